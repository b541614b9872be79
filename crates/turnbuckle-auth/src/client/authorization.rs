//! Sending the user to log in, and reading the answer.
