//! Finding out who gives tokens for a server.
