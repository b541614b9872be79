//! Tokens, codes and passwords: what must never be seen in a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that prints as `***`.
///
/// It is written out only where somebody asks for it by [`expose`](Secret::expose), and where it is serialised: into a request,
/// or into a file that only its owner can read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Says whether both are the same, in a time that tells nothing about where they differ.
    ///
    /// How long the longer one is can still be seen.
    pub fn is_same(&self, other: &Secret) -> bool {
        let (one, other) = (self.0.as_bytes(), other.0.as_bytes());
        let longest = one.len().max(other.len());
        let byte = |text: &[u8], at: usize| text.get(at).copied().unwrap_or_default();
        let difference = (0..longest).fold(0, |all, at| all | (byte(one, at) ^ byte(other, at)));
        // Kept as a value until the very end, so that no comparison inside the loop can be left early.
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
        let same = |one: &str, other: &str| Secret::new(one).is_same(&Secret::new(other));

        assert!(same("sesame", "sesame") && same("", ""));
        for (one, other) in [("a", "b"), ("a", "aa"), ("a", "a\0"), ("", "\0"), ("a", "")] {
            assert!(!same(one, other) && !same(other, one), "{one:?} {other:?}");
        }
    }
}
