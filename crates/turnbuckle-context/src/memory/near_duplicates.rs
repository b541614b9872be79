//! Detection of near duplicates.

use std::collections::HashSet;

use super::{
    ItemKind, MemoryItem,
    candidates::{best_candidates, term_weights},
    error_fingerprint,
};
use crate::{
    ContextError,
    memory_store::{ItemSelection, MemoryStore, Partition},
    text::{byte_prefix, tokenize},
};

/// Minimum similarity of near duplicates. Measured on examples; see the tests.
const MIN_SIMILARITY: f64 = 0.55;
/// Maximum numbers of compared and reported items.
const MAX_COMPARED: usize = 24;
const MAX_REPORTED: usize = 5;
/// Maximum number of bytes of a text that are compared.
const MAX_COMPARED_BYTES: usize = 20_000;
/// Maximum number of bytes of a reported title.
const MAX_TITLE_BYTES: usize = 500;

/// A near duplicate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarItem {
    /// The id.
    pub id: String,
    /// The title.
    pub title: String,
    /// The similarity of the texts, from 0 to 1.
    pub similarity: f64,
}

/// Returns the near duplicates of a new item, most similar first.
pub(super) async fn find_similar(
    store: &dyn MemoryStore,
    partition: &Partition,
    item: &MemoryItem,
) -> Result<Vec<SimilarItem>, ContextError> {
    let text = compared_text(item);
    let terms = tokenize::significant_terms(&text);
    let shingles = Shingles::new(&text);
    let listed = [store.candidates(partition, item.kind, &terms).await?];
    let weights = term_weights(&listed, &terms);
    let best = best_candidates(&listed[0], &weights, MAX_COMPARED);
    let numbers: Vec<_> = best.iter().map(|candidate| candidate.number).collect();
    let selection = ItemSelection {
        numbers: &numbers,
        branch: None,
        limit: MAX_COMPARED,
    };
    let mut similar = Vec::new();
    for other in store.items(partition, selection).await? {
        let similarity = shingles.similarity(&Shingles::new(&compared_text(&other)));
        if similarity >= MIN_SIMILARITY {
            similar.push(SimilarItem {
                title: byte_prefix(other.headline(), MAX_TITLE_BYTES).to_owned(),
                id: other.id,
                similarity,
            });
        }
    }
    similar.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
    similar.truncate(MAX_REPORTED);
    Ok(similar)
}

/// Returns the compared text of an item. Titles of checkpoints are ignored: they are short and often equal.
fn compared_text(item: &MemoryItem) -> String {
    let text = match item.kind {
        ItemKind::Checkpoint => item.body.clone(),
        ItemKind::Remediation => {
            let error = error_fingerprint::normalized_words(&item.title).join(" ");
            format!("{error}\n{}", item.body)
        }
        ItemKind::Skill => format!("{}\n{}\n{}", item.title, item.detail, item.body),
    };
    byte_prefix(&text, MAX_COMPARED_BYTES).to_owned()
}

/// The words of a text, and the pairs of adjacent words, as hashes.
pub(super) struct Shingles {
    words: HashSet<u64>,
    pairs: HashSet<u64>,
}

impl Shingles {
    pub(super) fn new(text: &str) -> Self {
        let words: Vec<u64> = text
            .split(|sign: char| !sign.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| hash(&word.to_lowercase()))
            .collect();
        let pairs = words.windows(2).map(hash).collect();
        let words = words.into_iter().collect();
        Self { words, pairs }
    }

    /// Returns the similarity from 0 to 1: half by words, half by pairs of words.
    pub(super) fn similarity(&self, other: &Self) -> f64 {
        let words = jaccard(&self.words, &other.words);
        if self.pairs.is_empty() && other.pairs.is_empty() {
            return words;
        }
        (words + jaccard(&self.pairs, &other.pairs)) / 2.0
    }
}

/// Returns the Jaccard index of two sets.
fn jaccard(one: &HashSet<u64>, other: &HashSet<u64>) -> f64 {
    let both = one.intersection(other).count();
    let either = one.len() + other.len() - both;
    if either == 0 {
        return 0.0;
    }
    both as f64 / either as f64
}

fn hash(value: &(impl std::hash::Hash + ?Sized)) -> u64 {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f64 {
        Shingles::new(one).similarity(&Shingles::new(other))
    }

    #[test]
    fn slightly_different_wordings_are_near_duplicates() {
        for (one, other) in [
            (
                "Finished the login form. Next: validate the e-mail address and add tests.",
                "Finished the login form. Next: validate the email address and add tests.",
            ),
            (
                "The cache is now invalidated on write; benchmark went from 12 ms to 3 ms.",
                "The cache is now invalidated on every write. Benchmark went from 12 ms to 4 ms.",
            ),
            (
                "Run `cargo clean`, then delete the lock file and build again with --locked",
                "Run `cargo clean`, then delete the lock file and build again",
            ),
        ] {
            let similarity = similarity(one, other);
            assert!(similarity >= MIN_SIMILARITY, "{similarity}: {one}");
        }
    }

    #[test]
    fn different_texts_about_one_topic_are_not_near_duplicates() {
        for (one, other) in [
            (
                "Finished the login form. Next: validate the e-mail address and add tests.",
                "Started the signup form. Next: validate the password and add a captcha.",
            ),
            (
                "The cache is now invalidated on write; benchmark went from 12 ms to 3 ms.",
                "The cache is no longer shared between threads; no change in the benchmark.",
            ),
            ("", "anything"),
        ] {
            let similarity = similarity(one, other);
            assert!(similarity < MIN_SIMILARITY - 0.1, "{similarity}: {one}");
        }
        assert_eq!(similarity("Word", "word!"), 1.0);
    }
}
