//! The keys of an issuer (JWKS, RFC 7517).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Algorithm, Jwk};

/// The public keys by which an issuer's tokens are verified.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// Why a set of keys is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwks {
    /// Longer, or of more keys, than any issuer has reason to.
    #[error(
        "a set of keys has at most {} bytes and {} keys",
        Jwks::MOST_BYTES,
        Jwks::MOST_KEYS
    )]
    TooLarge,
    /// Not JSON of the right shape.
    #[error("the set of keys cannot be read: {0}")]
    Shape(String),
}

impl Jwks {
    /// The most bytes that are read.
    pub const MOST_BYTES: usize = 512 * 1024;
    /// The most keys that are read.
    pub const MOST_KEYS: usize = 100;
    /// The most keys that are tried for one token.
    const MOST_TRIED: usize = 8;

    /// Reads a set. Keys for something else, or of a kind that is not supported, are left out.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidJwks> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Map<String, Value>>,
        }

        if json.len() > Self::MOST_BYTES {
            return Err(InvalidJwks::TooLarge);
        }
        let set: Set =
            serde_json::from_slice(json).map_err(|error| InvalidJwks::Shape(error.to_string()))?;
        if set.keys.len() > Self::MOST_KEYS {
            return Err(InvalidJwks::TooLarge);
        }
        let keys = set.keys.iter().filter_map(|key| Jwk::parse(key).ok());
        Ok(keys.collect())
    }

    /// Returns every key.
    pub fn iter(&self) -> impl Iterator<Item = &Jwk> {
        self.keys.iter()
    }

    /// Says whether one of the keys has this name.
    pub fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id() == Some(id))
    }

    /// Returns the keys that may have signed a token whose header names this key and algorithm, few of them.
    ///
    /// A key without a name may be any; so may all of them, if the header names none.
    pub fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Jwk> {
        self.keys
            .iter()
            .filter(move |key| id.is_none() || key.id().is_none() || key.id() == id)
            .filter(move |key| key.can(algorithm))
            .take(Self::MOST_TRIED)
    }
}

impl FromIterator<Jwk> for Jwks {
    fn from_iter<I: IntoIterator<Item = Jwk>>(keys: I) -> Self {
        let keys = keys.into_iter().collect();
        Self { keys }
    }
}
