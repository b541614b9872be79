//! The rules for clients: we play the server.
