//! The shares of callers in the limits that all callers use together: requests in flight, and partially received bodies.
//!
//! Only requests that wait are counted per caller: for their body, their handler or their stream. A request with an immediate
//! response takes no lock here.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use turnbuckle_store::SessionOwner;

use crate::sync::lock;

/// The callers with waiting requests, and the share that each of them may have.
pub(super) struct CallerShares {
    max_percent: usize,
    callers: Mutex<HashMap<SessionOwner, Arc<CallerUsage>>>,
    /// The waiting requests of all callers.
    waiting_requests: AtomicUsize,
}

/// The usage of one caller, while it has waiting requests.
pub(super) struct CallerUsage {
    owner: SessionOwner,
    waiting_requests: AtomicUsize,
    /// The bytes of its partially received bodies.
    pub(super) body_bytes: AtomicUsize,
}

/// The usage of a limit, in requests or in bytes.
pub(super) struct LimitUsage {
    /// The amount that the caller uses.
    pub(super) by_caller: usize,
    /// The amount that all other callers use.
    pub(super) by_others: usize,
    /// The amount that is free.
    pub(super) free: usize,
}

impl CallerShares {
    /// Creates the table. A caller may have `max_percent` of what it uses and what is free.
    pub(super) fn new(max_percent: usize) -> Self {
        Self {
            max_percent: max_percent.min(100),
            callers: Mutex::default(),
            waiting_requests: AtomicUsize::new(0),
        }
    }

    /// Returns the part of a limit that can be in use while no caller exceeds its share.
    pub(super) fn part_of(&self, limit: usize) -> usize {
        limit.saturating_mul(self.max_percent) / 100
    }

    /// Returns whether a caller may have one more request, if `free` more are possible.
    pub(super) fn allow_request(&self, owner: &SessionOwner, free: usize) -> bool {
        let by_caller = lock(&self.callers)
            .get(owner)
            .map_or(0, |usage| usage.waiting_requests.load(Ordering::Relaxed));
        let all = self.waiting_requests.load(Ordering::Relaxed);
        let usage = LimitUsage {
            by_caller,
            by_others: all.saturating_sub(by_caller),
            free,
        };
        self.allow(owner, &usage)
    }

    /// Returns whether a caller with this usage may use more.
    ///
    /// The share is part of what is still free, so the more callers there are, the less each of them gets, and none can use
    /// the rest. A caller without usage is not limited. Neither are the unknown callers behind a shared owner while they are
    /// the only ones: they may be all callers of a server.
    pub(super) fn allow(&self, owner: &SessionOwner, usage: &LimitUsage) -> bool {
        usage.by_caller == 0
            || owner.is_shared() && usage.by_others == 0
            || usage.by_caller < self.part_of(usage.by_caller.saturating_add(usage.free))
    }

    /// Counts a waiting request of a caller.
    pub(super) fn add_request(&self, owner: SessionOwner) -> Arc<CallerUsage> {
        self.waiting_requests.fetch_add(1, Ordering::Relaxed);
        let mut callers = lock(&self.callers);
        let usage = callers.entry(owner).or_insert_with_key(|owner| {
            Arc::new(CallerUsage {
                owner: owner.clone(),
                waiting_requests: AtomicUsize::new(0),
                body_bytes: AtomicUsize::new(0),
            })
        });
        usage.waiting_requests.fetch_add(1, Ordering::Relaxed);
        usage.clone()
    }

    /// Removes a waiting request.
    pub(super) fn remove_request(&self, usage: &CallerUsage) {
        self.waiting_requests.fetch_sub(1, Ordering::Relaxed);
        // Both counts change under the lock, so a caller is removed exactly with its last request.
        let mut callers = lock(&self.callers);
        if usage.waiting_requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            callers.remove(&usage.owner);
        }
    }
}

impl CallerUsage {
    pub(super) fn owner(&self) -> &SessionOwner {
        &self.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds requests of a caller while it may, with a limit of 100 for all. Returns their number.
    fn fill(shares: &CallerShares, owner: &SessionOwner) -> usize {
        let mut count = 0;
        loop {
            let free = 100 - shares.waiting_requests.load(Ordering::Relaxed);
            if free == 0 || !shares.allow_request(owner, free) {
                return count;
            }
            shares.add_request(owner.clone());
            count += 1;
        }
    }

    #[test]
    fn the_share_of_a_caller_leaves_room_for_others() {
        let shares = CallerShares::new(75);
        let counts: Vec<_> = ["a", "b", "c"]
            .map(|key| fill(&shares, &SessionOwner::caller(key)))
            .into();

        assert_eq!(counts, [75, 18, 5]);
        assert!(shares.allow_request(&SessionOwner::caller("d"), 1));
    }

    #[test]
    fn a_shared_owner_may_use_everything_while_it_is_alone() {
        let shares = CallerShares::new(75);
        let proxy = SessionOwner::shared("10.0.0.1");
        assert_eq!(fill(&shares, &proxy), 100);

        let shares = CallerShares::new(75);
        shares.add_request(SessionOwner::caller("a"));
        assert_eq!(fill(&shares, &proxy), 74);
    }

    #[test]
    fn a_caller_without_requests_is_forgotten() {
        let shares = CallerShares::new(75);
        let owner = SessionOwner::caller("a");
        let (first, second) = (
            shares.add_request(owner.clone()),
            shares.add_request(owner.clone()),
        );
        shares.remove_request(&first);
        assert_eq!(lock(&shares.callers).len(), 1);

        shares.remove_request(&second);

        assert_eq!(lock(&shares.callers).len(), 0);
        assert!(shares.allow_request(&owner, 1));
    }
}
