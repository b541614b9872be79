//! Servers that play a script.
