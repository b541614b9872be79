//! The shape of every message, revision by revision.
