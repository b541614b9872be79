//! Tokens that are bound to a key (DPoP, RFC 9449): whoever sends one along shows, with each request, that it has the key.

mod prover;

pub use prover::Prover;
