//! Signed tokens (JWT): the keys that sign them, and the keys that verify them.
//!
//! The envelope is read here; the cryptography is that of `ring`. Two rules keep forged tokens out:
//!
//! - The *key* decides which algorithms it is good for. What a header says only chooses among those, and there is no `none`
//!   and nothing with a shared secret ([`Algorithm`] has no such value).
//! - A header never brings its own key: `jwk`, `jku`, `x5c` and `x5u` are not looked at.

mod algorithm;
mod key;
mod key_set;
mod signing;
#[cfg(test)]
mod tests;
mod thumbprint;
mod token;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use key::{InvalidJwk, Jwk};
pub use key_set::{InvalidJwks, Jwks};
pub use signing::{InvalidKey, SigningError, SigningKey};
pub use token::{InvalidToken, Token};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Writes bytes as every part of a JWT is written.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads what [`encode`] writes, and nothing that only looks similar: each text has one meaning, each meaning one text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
