//! Relevance of an item to a query, from 0 to 1.
//!
//! BM25 with two changes. The weight of a term is bounded, so that the sum is a share of the query and thresholds do not depend
//! on other items; and the length is compared with the typical length of the kind.

use std::{collections::HashMap, time::Duration};

use super::{
    ItemKind, MemoryItem, candidates, candidates::ItemCandidate, error_fingerprint,
    near_duplicates::Shingles, search::HalfLife,
};
use crate::{
    code_search::synonyms::stem,
    text::{byte_prefix, tokenize},
};

/// Weights of an occurrence, by member.
const TITLE_WEIGHT: f64 = 3.0;
const TAGS_WEIGHT: f64 = 3.0;
const DETAIL_WEIGHT: f64 = 1.5;
const BODY_WEIGHT: f64 = 1.0;
/// The parameters `k1` (saturation of repeated terms) and `b` (influence of the length) of BM25.
const BM25_K1: f64 = 0.6;
const BM25_B: f64 = 0.5;
/// Maximum ratio of the length to the typical length.
const MAX_LENGTH_RATIO: f64 = 8.0;
/// Maximum number of bytes used of a query, and of a text in which occurrences are counted.
const MAX_QUERY_BYTES: usize = 16 * 1024;
const MAX_COUNTED_BYTES: usize = 16 * 1024;
/// The weight of a very old item.
const MIN_AGE_WEIGHT: f64 = 0.5;
/// Minimum score of an error that differs only in numbers and paths.
const SAME_ERROR_SCORE: f64 = 0.85;
/// Factor if both errors have codes, but none in common.
const OTHER_CODE_FACTOR: f64 = 0.75;

/// An analyzed query.
pub(super) struct PreparedQuery {
    kind: ItemKind,
    /// Terms for the store; error hashes come last.
    pub(super) terms: Vec<String>,
    /// The number of terms that are words.
    words: usize,
    /// Each term as stem ids.
    stems: Vec<Vec<usize>>,
    stem_ids: HashMap<String, usize>,
    error: Option<ErrorQuery>,
}

/// Data about a query that is an error.
struct ErrorQuery {
    shingles: Shingles,
    codes: Vec<String>,
}

impl PreparedQuery {
    pub(super) fn new(kind: ItemKind, text: &str) -> Self {
        let text = byte_prefix(text, MAX_QUERY_BYTES);
        let mut terms = tokenize::significant_terms(text);
        terms.truncate(candidates::MAX_TERMS);
        let words = terms.len();
        let mut stem_ids = HashMap::new();
        let mut number = |word: &str| {
            let next = stem_ids.len();
            *stem_ids.entry(stem(word).to_owned()).or_insert(next)
        };
        let stems = terms
            .iter()
            .map(|term| term.split(' ').map(&mut number).collect())
            .collect();
        let error = (kind == ItemKind::Remediation).then(|| ErrorQuery {
            shingles: error_shingles(text),
            codes: error_fingerprint(text).codes,
        });
        if error.is_some() {
            terms.extend(error_fingerprint::fingerprint_hashes(text));
            terms.truncate(candidates::MAX_TERMS);
        }
        Self {
            kind,
            terms,
            words,
            stems,
            stem_ids,
            error,
        }
    }

    /// Returns the relevance of an item, regardless of age.
    pub(super) fn score(
        &self,
        weights: &[f64],
        candidate: &ItemCandidate,
        item: &MemoryItem,
    ) -> f64 {
        let share = self.covered_share(weights, candidate, item);
        match &self.error {
            Some(error) => self.score_error(error, share, candidate, item),
            None => share,
        }
    }

    /// Returns the share of the query that the item contains.
    fn covered_share(&self, weights: &[f64], candidate: &ItemCandidate, item: &MemoryItem) -> f64 {
        let counts = self.weighted_counts(item);
        let length = item.title.len() + item.body.len() + item.detail.len();
        let lengths = (length as f64 / typical_length(self.kind)).min(MAX_LENGTH_RATIO);
        let norm = BM25_K1 * (1.0 - BM25_B + BM25_B * lengths);
        let (mut got, mut all) = (0.0, 0.0);
        for term in 0..self.words {
            let mut count = counts[term];
            // The stemmer of the store matches more forms of a word.
            if count == 0.0 && candidate.has(term) {
                count = BODY_WEIGHT;
            }
            got += weights[term] * count / (count + norm);
            all += weights[term];
        }
        if all > 0.0 { got / all } else { 0.0 }
    }

    /// Counts the occurrences of each term, weighted by member.
    fn weighted_counts(&self, item: &MemoryItem) -> Vec<f64> {
        let mut counts = vec![0.0; self.words];
        let tags = item.tags.join(" . ");
        for (text, weight) in [
            (&item.title, TITLE_WEIGHT),
            (&tags, TAGS_WEIGHT),
            (&item.detail, DETAIL_WEIGHT),
            (&item.body, BODY_WEIGHT),
        ] {
            let text = byte_prefix(text, MAX_COUNTED_BYTES).to_lowercase();
            let stems: Vec<Option<usize>> = text
                .split(|sign: char| !sign.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .map(|word| self.stem_ids.get(stem(word)).copied())
                .collect();
            for (term, count) in self.stems.iter().zip(&mut counts) {
                let is_here = |window: &&[Option<usize>]| {
                    let pairs = window.iter().zip(term);
                    pairs
                        .into_iter()
                        .all(|(stem, expected)| *stem == Some(*expected))
                };
                *count += weight * stems.windows(term.len()).filter(is_here).count() as f64;
            }
        }
        counts
    }

    fn score_error(
        &self,
        error: &ErrorQuery,
        share: f64,
        candidate: &ItemCandidate,
        item: &MemoryItem,
    ) -> f64 {
        let similarity = error.shingles.similarity(&error_shingles(&item.title));
        let mixed = 0.6 * share + 0.4 * similarity;
        if (self.words..self.terms.len()).any(|shingles| candidate.has(shingles)) {
            return mixed.max(SAME_ERROR_SCORE + (1.0 - SAME_ERROR_SCORE) * similarity);
        }
        let codes = error_fingerprint(&item.title).codes;
        let differ = !codes.is_empty()
            && !error.codes.is_empty()
            && !codes.iter().any(|code| error.codes.contains(code));
        if differ {
            mixed * OTHER_CODE_FACTOR
        } else {
            mixed
        }
    }
}

impl HalfLife {
    /// Returns the weight of an item of this age.
    pub(super) fn weight(&self, kind: ItemKind, age: i64) -> f64 {
        let half_life = self.for_kind(kind).as_millis() as f64;
        if half_life == 0.0 {
            return 1.0;
        }
        MIN_AGE_WEIGHT + (1.0 - MIN_AGE_WEIGHT) * 0.5_f64.powf(age.max(0) as f64 / half_life)
    }

    fn for_kind(&self, kind: ItemKind) -> Duration {
        match kind {
            ItemKind::Checkpoint => self.checkpoint,
            ItemKind::Remediation => self.remediation,
            ItemKind::Skill => self.skill,
        }
    }
}

fn error_shingles(error: &str) -> Shingles {
    Shingles::new(&error_fingerprint::normalized_words(error).join(" "))
}

fn typical_length(kind: ItemKind) -> f64 {
    match kind {
        ItemKind::Checkpoint => 1_500.0,
        ItemKind::Remediation => 1_000.0,
        ItemKind::Skill => 4_000.0,
    }
}
