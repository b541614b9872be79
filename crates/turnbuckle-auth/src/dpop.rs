//! Keys that tokens are bound to (RFC 9449): proofs, made and checked.
