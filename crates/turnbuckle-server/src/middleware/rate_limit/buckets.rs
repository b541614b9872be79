//! What is left to each caller: one time per caller, in a table that does not grow.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Parts of the table, so that callers seldom wait for each other.
const SHARDS: usize = 16;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The time from one operation to the next.
    pub(super) interval: Duration,
    /// How far ahead of its time a caller may be.
    ahead: Duration,
}

impl Pace {
    pub(super) fn new(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            ahead: interval.saturating_mul(burst),
        }
    }
}

/// The buckets of all callers.
pub(super) struct Buckets {
    shards: [Mutex<Shard>; SHARDS],
}

/// Buckets by age: those used of late, and those that were not since the table was last full.
#[derive(Default)]
struct Shard {
    young: HashMap<u64, Instant>,
    old: HashMap<u64, Instant>,
    capacity: usize,
}

impl Buckets {
    pub(super) fn new(callers: usize) -> Self {
        // Two generations share the room of a shard.
        let capacity = callers.div_ceil(SHARDS * 2).max(1);
        let shards = std::array::from_fn(|_| {
            Mutex::new(Shard {
                capacity,
                ..Shard::default()
            })
        });
        Self { shards }
    }

    /// Takes one operation out of a caller's bucket, or says when there will be one.
    pub(super) fn take(&self, caller: u64, pace: Pace, now: Instant) -> Result<(), Duration> {
        let shard = &self.shards[(caller % SHARDS as u64) as usize];
        // A panic while the lock is held leaves a valid table behind.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        // The time at which the bucket is full again says all about it.
        let full = shard.find(caller).map_or(now, |full| full.max(now)) + pace.interval;
        let ahead = full - now;
        if ahead > pace.ahead {
            return Err(ahead - pace.ahead);
        }
        shard.put(caller, full);
        Ok(())
    }

    /// How many callers are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        let len = |shard: &Mutex<Shard>| shard.lock().map_or(0, |it| it.young.len() + it.old.len());
        self.shards.iter().map(len).sum()
    }
}

impl Shard {
    fn find(&self, caller: u64) -> Option<Instant> {
        let found = self.young.get(&caller).or_else(|| self.old.get(&caller));
        found.copied()
    }

    fn put(&mut self, caller: u64, full: Instant) {
        if self.young.len() >= self.capacity && !self.young.contains_key(&caller) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(caller, full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let buckets = Buckets::new(100);
        let pace = Pace::new(Duration::from_secs(1), 3);
        let now = Instant::now();
        let take = |seconds| buckets.take(7, pace, now + Duration::from_secs_f64(seconds));

        for _ in 0..3 {
            assert_eq!(take(0.0), Ok(()));
        }
        assert_eq!(take(0.0), Err(Duration::from_secs(1)));
        assert_eq!(take(0.75), Err(Duration::from_millis(250)));
        assert_eq!(take(1.0), Ok(()), "what was refused cost nothing");
        assert!(take(1.0).is_err());
        for _ in 0..3 {
            assert_eq!(take(100.0), Ok(()));
        }
        assert!(take(100.0).is_err(), "nobody saves up more than the burst");
    }

    #[test]
    fn a_crowd_of_callers_does_not_grow_the_table() {
        let buckets = Buckets::new(160);
        let pace = Pace::new(Duration::from_secs(60), 1);
        let now = Instant::now();

        for caller in 0..100_000 {
            assert_eq!(buckets.take(caller, pace, now), Ok(()));
        }

        assert!(buckets.len() <= 160, "{}", buckets.len());
        assert!(
            buckets.take(99_999, pace, now).is_err(),
            "the last is known"
        );
        assert!(buckets.take(0, pace, now).is_ok(), "the first is forgotten");
    }
}
