//! Tokens that are bound to a key (DPoP, RFC 9449): whoever sends one along shows, with each request, that it has the key.
//!
//! [`Prover`] is the side that has the key, [`Proofs`] the side that checks.

mod nonces;
mod proofs;
mod prover;
mod seen;

pub use proofs::{Expected, InvalidProof, Proofs};
pub use prover::Prover;
