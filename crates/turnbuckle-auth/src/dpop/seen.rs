//! Proofs that were used, for as long as they could be used again.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use sha2::{Digest, Sha256};

/// What became of a proof that was shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sight {
    First,
    Again,
    /// There is no room to remember it.
    TooMany,
}

/// A bounded memory of two periods: one that goes on, and the one before it.
pub(super) struct Seen {
    periods: Mutex<Periods>,
    /// In seconds.
    period: u64,
    most: usize,
    most_of_one: usize,
}

#[derive(Default)]
struct Periods {
    began: u64,
    current: HashSet<[u8; 32]>,
    previous: HashSet<[u8; 32]>,
    /// How many of the current ones were made with which key.
    of_key: HashMap<String, usize>,
}

impl Seen {
    /// Remembers each proof for at least a period, and at most so many of them in one; of one key fewer, so that nobody can use
    /// up the room of all others.
    pub(super) fn new(period: u64, most: usize, most_of_one: usize) -> Self {
        Self {
            periods: Mutex::default(),
            period,
            most,
            most_of_one,
        }
    }

    pub(super) fn note(&self, key: &str, id: &str, now: u64) -> Sight {
        // A thumbprint has no space in it, so no two pairs are written alike.
        let digest = Sha256::digest(format!("{key} {id}")).into();
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        periods.turn(now, self.period);
        if periods.current.contains(&digest) || periods.previous.contains(&digest) {
            return Sight::Again;
        }
        let of_key = periods.of_key.get(key).copied().unwrap_or_default();
        if periods.current.len() >= self.most || of_key >= self.most_of_one {
            return Sight::TooMany;
        }
        periods.current.insert(digest);
        periods.of_key.insert(key.to_owned(), of_key + 1);
        Sight::First
    }
}

impl Periods {
    fn turn(&mut self, now: u64, period: u64) {
        // A clock that was set back ends no period: what was seen stays seen.
        let age = now.saturating_sub(self.began);
        if age >= period {
            self.previous = std::mem::take(&mut self.current);
            self.of_key.clear();
            self.began = now;
        }
        if age >= 2 * period {
            self.previous.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_new_once_within_a_period() {
        let seen = Seen::new(60, 10, 10);

        assert_eq!(seen.note("key", "a", 1000), Sight::First);
        assert_eq!(seen.note("key", "a", 1000), Sight::Again);
        assert_eq!(seen.note("other", "a", 1000), Sight::First);
        assert_eq!(seen.note("key", "a", 1059), Sight::Again);
        assert_eq!(seen.note("key", "b", 1059), Sight::First);
        assert_eq!(seen.note("key", "b", 1119), Sight::Again);
        assert_eq!(seen.note("key", "a", 1200), Sight::First, "forgotten");
    }

    #[test]
    fn a_flood_is_refused_until_the_period_is_over() {
        let seen = Seen::new(60, 10, 10);
        for at in 0..10 {
            assert_eq!(seen.note("key", &at.to_string(), 1000), Sight::First);
        }

        assert_eq!(seen.note("key", "one more", 1059), Sight::TooMany);
        assert_eq!(seen.note("key", "one more", 1060), Sight::First);
        assert_eq!(
            seen.note("key", "0", 1060),
            Sight::Again,
            "remembered all the same"
        );
    }

    #[test]
    fn one_key_leaves_room_for_others() {
        let seen = Seen::new(60, 10, 3);
        for id in ["a", "b", "c"] {
            assert_eq!(seen.note("greedy", id, 1000), Sight::First);
        }

        assert_eq!(seen.note("greedy", "d", 1000), Sight::TooMany);
        assert_eq!(seen.note("other", "d", 1000), Sight::First);
        assert_eq!(seen.note("greedy", "d", 1060), Sight::First);
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_nothing() {
        let seen = Seen::new(60, 10, 10);
        seen.note("key", "a", 1000);

        assert_eq!(seen.note("key", "a", 10), Sight::Again);
    }
}
