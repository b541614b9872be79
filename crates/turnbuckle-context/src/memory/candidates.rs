//! Ranking of candidates by the terms of a query that they contain.
//!
//! The store lists the items of each term; only the items with the highest total weight are loaded and scored.

use std::collections::HashMap;

use crate::memory_store::{ItemNumber, TermCandidates};

/// Maximum number of terms in a query; a candidate has one bit per term.
pub(super) const MAX_TERMS: usize = 64;

/// Returns the weight of each term over several partitions.
pub(super) fn term_weights(several: &[TermCandidates], terms: &[String]) -> Vec<f64> {
    let item_count: f64 = several.iter().map(|one| one.item_count).sum();
    let weight = |(at, term): (usize, &String)| {
        let count: f64 = several.iter().map(|one| one.lists[at].count).sum();
        // A phrase without occurrences does not count: its words do.
        if count == 0.0 && term.contains(' ') {
            return 0.0;
        }
        let seen = count.max(1.0);
        let rarity = (1.0 + (item_count - seen + 0.5).max(0.5) / (seen + 0.5)).ln();
        // A word without occurrences would have the highest weight, but is often just part of the wording of the query.
        if count == 0.0 { rarity / 2.0 } else { rarity }
    };
    terms.iter().enumerate().map(weight).collect()
}

/// Returns the items with the highest total weight, best first, then newest first.
pub(super) fn best_candidates(
    listed: &TermCandidates,
    weights: &[f64],
    most: usize,
) -> Vec<ItemCandidate> {
    let mut candidates: HashMap<ItemNumber, ItemCandidate> = HashMap::new();
    let mut add = |term: usize, numbers: &[ItemNumber]| {
        for &number in numbers {
            let new = ItemCandidate::for_number(number);
            let candidate = candidates.entry(number).or_insert(new);
            candidate.add(term, weights[term]);
        }
    };
    for (term, list) in listed.lists.iter().enumerate() {
        add(term, &list.numbers);
    }
    for cooccurrence in &listed.cooccurrences {
        for &term in &cooccurrence.terms {
            add(term, &cooccurrence.numbers);
        }
    }
    let mut candidates: Vec<ItemCandidate> = candidates.into_values().collect();
    let order = |one: &ItemCandidate, other: &ItemCandidate| {
        let by_weight = other.weight.total_cmp(&one.weight);
        by_weight.then(other.number.cmp(&one.number))
    };
    if candidates.len() > most {
        candidates.select_nth_unstable_by(most, order);
        candidates.truncate(most);
    }
    candidates.sort_by(order);
    candidates
}

/// An item that contains some terms of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ItemCandidate {
    pub(super) number: ItemNumber,
    weight: f64,
    /// One bit per term that the store found. If the list of a term was truncated, its bit may be missing.
    terms: u64,
}

impl ItemCandidate {
    /// Creates a candidate without terms.
    pub(super) fn for_number(number: ItemNumber) -> Self {
        Self {
            number,
            weight: 0.0,
            terms: 0,
        }
    }

    /// Returns whether the store found the term in the item.
    pub(super) fn has(&self, term: usize) -> bool {
        self.terms & (1 << term) != 0
    }

    fn add(&mut self, term: usize, weight: f64) {
        if !self.has(term) {
            self.terms |= 1 << term;
            self.weight += weight;
        }
    }
}
