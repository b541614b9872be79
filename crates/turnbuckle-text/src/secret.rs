//! A text that prints as `***`.

use std::{fmt, hint::black_box};

/// A text that prints as `***`.
///
/// The text leaves it only through [`expose`](Secret::expose) and, with the feature `serde`, through serialization.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares two secrets in a time that does not depend on where they differ.
    ///
    /// The length of the longer one can still be observed.
    pub fn constant_time_eq(&self, other: &Self) -> bool {
        let (one, other) = (self.0.as_bytes(), other.0.as_bytes());
        let longest = one.len().max(other.len());
        let byte = |text: &[u8], at: usize| text.get(at).copied().unwrap_or_default();
        let difference = (0..longest).fold(0, |all, at| all | (byte(one, at) ^ byte(other, at)));
        // The comparison must not be moved into the loop, where it could return early.
        black_box(difference) == 0 && one.len() == other.len()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(feature = "serde")]
mod serialization {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Secret;

    impl Serialize for Secret {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&self.0)
        }
    }

    impl<'de> Deserialize<'de> for Secret {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            String::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expose_returns_the_text() {
        let secret = Secret::new("sesame");

        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.expose(), "sesame");
    }

    #[test]
    fn only_equal_texts_compare_equal() {
        let same = |one: &str, other: &str| Secret::new(one).constant_time_eq(&Secret::new(other));

        assert!(same("sesame", "sesame") && same("", ""));
        for (one, other) in [("a", "b"), ("a", "aa"), ("a", "a\0"), ("", "\0"), ("a", "")] {
            assert!(!same(one, other) && !same(other, one), "{one:?} {other:?}");
        }
    }
}
