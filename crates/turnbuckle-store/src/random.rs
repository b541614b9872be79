//! Names that nobody can guess.

use std::fmt;
use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::StoreError;

/// Random bytes in a name: 144 bits, which base64url spells in whole characters.
const BYTES: usize = 18;
const CHARACTERS: usize = BYTES / 3 * 4;

/// A text that is not an identifier this store could have given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier")]
pub struct InvalidId;

/// 144 random bits; its text is 24 characters of base64url.
///
/// Kept as bytes, so that a name from a peer either has exactly the right form or is refused before
/// anything is looked up, and so that copying one is free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RandomId([u8; BYTES]);

impl RandomId {
    pub(crate) fn generate() -> Result<Self, StoreError> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(StoreError::unavailable)?;
        Ok(Self(bytes))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidId> {
        if text.len() != CHARACTERS {
            return Err(InvalidId);
        }
        let mut bytes = [0; BYTES];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(BYTES) => Ok(Self(bytes)),
            _ => Err(InvalidId),
        }
    }

    /// Writes only the beginning: whoever reads a log must not learn the whole.
    pub(crate) fn fmt_prefix(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        write!(f, "{name}({}…)", &text[..6])
    }
}

impl Hash for RandomId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All bytes are equally random, so a few of them tell names apart as well as all do.
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::Display for RandomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// Finds the place of an id in a hash table by its own randomness, instead of computing more.
///
/// For tables that hold only ids that a store made, such as [`SessionId`](crate::SessionId)s: what a peer invents is
/// looked up there but never stored, so it cannot crowd one place.
#[derive(Clone, Debug, Default)]
pub struct OwnRandomness(u64);

impl Hasher for OwnRandomness {
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

/// Gives a public newtype over [`RandomId`] its text forms.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($crate::random::RandomId);

        impl $name {
            /// Makes a new one from the randomness of the operating system.
            pub fn generate() -> Result<Self, $crate::StoreError> {
                $crate::random::RandomId::generate().map(Self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::random::RandomId::parse(text).map(Self)
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
