//! The person at the other end.
