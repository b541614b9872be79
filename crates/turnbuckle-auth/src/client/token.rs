//! Getting tokens.
