//! Finders: secrets whose form takes more than a pattern. Each one reads its text once.

mod prefixed_block;
mod seed_phrase;
mod table;

use std::ops::Range;

use serde::Deserialize;

/// Code that finds the secrets of a rule.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SecretFinder {
    PrefixedBlock,
    SeedPhrase,
    Table,
}

impl SecretFinder {
    /// Returns the places that may hold a secret, in the order of the text.
    pub(super) fn find(self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::PrefixedBlock => prefixed_block::find(text),
            Self::SeedPhrase => seed_phrase::find(text),
            Self::Table => table::find(text),
        }
    }
}

/// Returns the lines of a text with their offsets, without line ends.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split('\n').map(move |line| {
        let start = offset;
        offset += line.len() + 1;
        (start, line)
    })
}
