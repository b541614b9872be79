//! Becoming known to an authorization server.
