//! Tokens, codes and passwords, which must not be logged.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A string that prints as `***`.
///
/// The text is accessible through [`expose`](Secret::expose) and through serialization, which is for requests and for
/// files that only their owner can read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares two secrets in a time that does not depend on where they differ.
    ///
    /// The time still depends on the length of the longer one.
    pub fn constant_time_eq(&self, other: &Secret) -> bool {
        let (one, other) = (self.0.as_bytes(), other.0.as_bytes());
        let longest = one.len().max(other.len());
        let byte = |text: &[u8], at: usize| text.get(at).copied().unwrap_or_default();
        let difference = (0..longest).fold(0, |all, at| all | (byte(one, at) ^ byte(other, at)));
        // Accumulated until the end, so that the compiler cannot leave the loop early.
        std::hint::black_box(difference) == 0 && one.len() == other.len()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seen_only_by_who_asks() {
        let secret = Secret::new("sesame");

        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.expose(), "sesame");
    }

    #[test]
    fn only_the_same_text_is_the_same() {
        let same = |one: &str, other: &str| Secret::new(one).constant_time_eq(&Secret::new(other));

        assert!(same("sesame", "sesame") && same("", ""));
        for (one, other) in [("a", "b"), ("a", "aa"), ("a", "a\0"), ("", "\0"), ("a", "")] {
            assert!(!same(one, other) && !same(other, one), "{one:?} {other:?}");
        }
    }
}
