//! The resource server: who is let in with which token.
