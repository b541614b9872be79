//! Several rankings become one, by the ranks alone: scores of different makes cannot be added.

use std::{collections::HashMap, hash::Hash};

/// The usual constant: far down a list, a rank more or less hardly matters.
const DEFAULT_K: f64 = 60.0;

/// Weighted reciprocal rank fusion.
///
/// A list gives each of its things `weight / (k + rank)`, with ranks from 1. Things with the same sum keep the order in
/// which they were first listed.
///
/// ```
/// # use turnbuckle_context::text::rank_fusion::RankFusion;
/// let fused = RankFusion::new().list(1.0, ["a", "b", "c"]).list(0.5, ["c", "b"]).ranked();
/// let order: Vec<_> = fused.iter().map(|(thing, _)| *thing).collect();
/// assert_eq!(order, ["b", "c", "a"]);
/// ```
#[derive(Clone, Debug)]
pub struct RankFusion<T> {
    k: f64,
    sums: Vec<(T, f64)>,
    places: HashMap<T, usize>,
    lists: usize,
    /// The last list that named the thing of a place, so that one that names it twice counts once.
    named: Vec<usize>,
}

impl<T: Clone + Eq + Hash> RankFusion<T> {
    /// Begins without any list, with the usual constant of 60.
    pub fn new() -> Self {
        Self {
            k: DEFAULT_K,
            sums: Vec::new(),
            places: HashMap::new(),
            lists: 0,
            named: Vec::new(),
        }
    }

    /// Sets the constant for the lists that follow: a smaller one makes the first ranks worth more.
    #[must_use]
    pub fn k(mut self, k: f64) -> Self {
        self.k = if k.is_finite() { k.max(0.0) } else { DEFAULT_K };
        self
    }

    /// Adds a list, best first. Without a positive weight it is ignored.
    #[must_use]
    pub fn list(mut self, weight: f64, things: impl IntoIterator<Item = T>) -> Self {
        if weight.is_finite() && weight > 0.0 {
            self.lists += 1;
            for (rank, thing) in (1_u32..).zip(things) {
                self.add(thing, weight / (self.k + f64::from(rank)));
            }
        }
        self
    }

    /// Everything that was listed, best first, with its sum.
    pub fn ranked(mut self) -> Vec<(T, f64)> {
        self.sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        self.sums
    }

    fn add(&mut self, thing: T, share: f64) {
        let place = match self.places.get(&thing) {
            Some(place) => *place,
            None => {
                self.places.insert(thing.clone(), self.sums.len());
                self.sums.push((thing, 0.0));
                self.named.push(0);
                self.sums.len() - 1
            }
        };
        if self.named[place] != self.lists {
            self.named[place] = self.lists;
            self.sums[place].1 += share;
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
            .map(|(thing, _)| thing)
            .collect()
    }

    #[test]
    fn one_list_stays_as_it_is() {
        assert_eq!(
            order(RankFusion::new().list(1.0, ["b", "a", "c"])),
            ["b", "a", "c"]
        );
    }

    #[test]
    fn what_both_lists_have_comes_before_what_one_has() {
        let fused = RankFusion::new()
            .list(1.0, ["a", "b"])
            .list(1.0, ["c", "b"]);
        assert_eq!(order(fused), ["b", "a", "c"]);
    }

    #[test]
    fn ties_keep_the_order_of_the_first_mention() {
        let fused = RankFusion::new()
            .list(1.0, ["x", "y"])
            .list(1.0, ["y", "x"]);
        assert_eq!(order(fused), ["x", "y"]);
    }

    #[test]
    fn a_weight_decides_between_lists_that_disagree() {
        let fused = |weight| RankFusion::new().list(1.0, ["a"]).list(weight, ["b"]);
        assert_eq!(order(fused(0.5)), ["a", "b"]);
        assert_eq!(order(fused(2.0)), ["b", "a"]);
    }

    #[test]
    fn a_small_constant_lets_the_first_rank_win() {
        let fused = |k| {
            let lists = RankFusion::new().k(k).list(1.0, ["a", "b", "c"]);
            lists.list(1.0, ["d", "b", "c"])
        };
        assert_eq!(order(fused(60.0))[0], "b");
        assert_eq!(order(fused(0.0))[0], "a");
    }

    #[test]
    fn a_thing_that_a_list_names_twice_counts_once_for_it() {
        let fused = RankFusion::new().list(1.0, ["a", "b", "b"]).ranked();
        assert_eq!(fused, [("a", 1.0 / 61.0), ("b", 1.0 / 62.0)]);
    }

    #[test]
    fn a_weight_that_is_no_weight_leaves_its_list_out() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                order(RankFusion::new().list(1.0, ["a"]).list(weight, ["b"])),
                ["a"]
            );
        }
    }
}
