//! Fusion of several rankings by rank alone: scores of different methods cannot be added.

use std::{collections::HashMap, hash::Hash};

/// The usual constant: it makes differences between low ranks small.
const DEFAULT_K: f64 = 60.0;

/// Weighted reciprocal rank fusion.
///
/// Each list adds `weight / (k + rank)` to the score of each of its entries, with ranks from 1. Entries with the same sum keep
/// the order in which they were first listed.
#[derive(Clone, Debug)]
pub(crate) struct RankFusion<T> {
    k: f64,
    sums: Vec<(T, f64)>,
    positions: HashMap<T, usize>,
    lists: usize,
    /// The last list that contains the entry, so that a list with a duplicate counts once.
    named: Vec<usize>,
}

impl<T: Clone + Eq + Hash> RankFusion<T> {
    /// Creates a fusion without lists, with the usual constant of 60.
    pub(crate) fn new() -> Self {
        Self {
            k: DEFAULT_K,
            sums: Vec::new(),
            positions: HashMap::new(),
            lists: 0,
            named: Vec::new(),
        }
    }

    /// Sets the constant for the following lists: a smaller one gives more weight to the first ranks.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn k(mut self, k: f64) -> Self {
        self.k = if k.is_finite() { k.max(0.0) } else { DEFAULT_K };
        self
    }

    /// Adds a list, best first. A list is ignored unless its weight is positive and finite.
    #[must_use]
    pub(crate) fn list(mut self, weight: f64, entries: impl IntoIterator<Item = T>) -> Self {
        if weight.is_finite() && weight > 0.0 {
            self.lists += 1;
            for (rank, entry) in (1_u32..).zip(entries) {
                self.add(entry, weight / (self.k + f64::from(rank)));
            }
        }
        self
    }

    /// Returns all entries with their scores, best first.
    pub(crate) fn ranked(mut self) -> Vec<(T, f64)> {
        self.sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        self.sums
    }

    fn add(&mut self, entry: T, share: f64) {
        let position = match self.positions.get(&entry) {
            Some(position) => *position,
            None => {
                self.positions.insert(entry.clone(), self.sums.len());
                self.sums.push((entry, 0.0));
                self.named.push(0);
                self.sums.len() - 1
            }
        };
        if self.named[position] != self.lists {
            self.named[position] = self.lists;
            self.sums[position].1 += share;
        }
    }
}

impl<T: Clone + Eq + Hash> Default for RankFusion<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(fusion: RankFusion<&'static str>) -> Vec<&'static str> {
        fusion
            .ranked()
            .into_iter()
            .map(|(entry, _)| entry)
            .collect()
    }

    #[test]
    fn ranks_of_all_lists_are_combined() {
        let fused = RankFusion::new()
            .list(1.0, ["a", "b", "c"])
            .list(0.5, ["c", "b"]);
        assert_eq!(order(fused), ["b", "c", "a"]);
    }

    #[test]
    fn one_list_keeps_its_order() {
        assert_eq!(
            order(RankFusion::new().list(1.0, ["b", "a", "c"])),
            ["b", "a", "c"]
        );
    }

    #[test]
    fn entries_of_both_lists_rank_before_entries_of_one() {
        let fused = RankFusion::new()
            .list(1.0, ["a", "b"])
            .list(1.0, ["c", "b"]);
        assert_eq!(order(fused), ["b", "a", "c"]);
    }

    #[test]
    fn ties_keep_the_order_of_first_occurrence() {
        let fused = RankFusion::new()
            .list(1.0, ["x", "y"])
            .list(1.0, ["y", "x"]);
        assert_eq!(order(fused), ["x", "y"]);
    }

    #[test]
    fn the_weight_decides_between_conflicting_lists() {
        let fused = |weight| RankFusion::new().list(1.0, ["a"]).list(weight, ["b"]);
        assert_eq!(order(fused(0.5)), ["a", "b"]);
        assert_eq!(order(fused(2.0)), ["b", "a"]);
    }

    #[test]
    fn a_small_constant_favors_the_first_rank() {
        let fused = |k| {
            let lists = RankFusion::new().k(k).list(1.0, ["a", "b", "c"]);
            lists.list(1.0, ["d", "b", "c"])
        };
        assert_eq!(order(fused(60.0))[0], "b");
        assert_eq!(order(fused(0.0))[0], "a");
    }

    #[test]
    fn a_duplicate_in_one_list_counts_once() {
        let fused = RankFusion::new().list(1.0, ["a", "b", "b"]).ranked();
        assert_eq!(fused, [("a", 1.0 / 61.0), ("b", 1.0 / 62.0)]);
    }

    #[test]
    fn a_list_with_an_invalid_weight_is_ignored() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                order(RankFusion::new().list(1.0, ["a"]).list(weight, ["b"])),
                ["a"]
            );
        }
    }
}
