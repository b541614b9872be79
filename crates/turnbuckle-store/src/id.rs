//! Random ids that cannot be guessed.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::StoreError;

/// Random bytes of an id: 144 bits, which base64url encodes without padding.
const ID_BYTES: usize = 18;
const ID_CHARACTERS: usize = ID_BYTES / 3 * 4;

/// The text is not a valid id of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id")]
pub struct InvalidStoreId;

/// 144 random bits, written as 24 characters of base64url.
///
/// Stored as bytes, so that an id from a peer is either well formed or rejected before any lookup, and so that copies
/// are cheap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RandomId([u8; ID_BYTES]);

impl RandomId {
    pub(crate) fn generate() -> Result<Self, StoreError> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes).map_err(StoreError::unavailable)?;
        Ok(Self(bytes))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidStoreId> {
        if text.len() != ID_CHARACTERS {
            return Err(InvalidStoreId);
        }
        let mut bytes = [0; ID_BYTES];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(ID_BYTES) => Ok(Self(bytes)),
            _ => Err(InvalidStoreId),
        }
    }

    /// Writes only the first characters, so that logs do not reveal the id.
    pub(crate) fn fmt_prefix(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        write!(f, "{name}({}…)", &text[..6])
    }
}

impl Hash for RandomId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All bytes are equally random, so eight of them are enough for a hash.
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::Display for RandomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// Hashes a random id by returning its own bits.
///
/// Use it only for tables with keys that a store generated, such as [`SessionId`](crate::SessionId)s. A peer can
/// look up ids of its choice but cannot insert them, so it cannot cause collisions.
#[derive(Clone, Debug, Default)]
pub struct RandomIdHasher(u64);

impl Hasher for RandomIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(8) ^ number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Implements the text forms of a public newtype over [`RandomId`].
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($crate::id::RandomId);

        impl $name {
            /// Generates a new id from the random number generator of the operating system.
            pub fn generate() -> Result<Self, $crate::StoreError> {
                $crate::id::RandomId::generate().map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidStoreId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::id::RandomId::parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt_prefix(stringify!($name), f)
            }
        }
    };
}
pub(crate) use random_id;

#[cfg(test)]
mod tests;
