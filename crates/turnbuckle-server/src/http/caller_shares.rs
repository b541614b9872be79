//! The shares of callers in the limits that all callers use together: connections, requests in flight, and partially
//! received bodies.
//!
//! Only requests that wait are counted per caller: for their body, their handler or their stream. A request with an immediate
//! response costs nothing here. A connection keeps the usage of its address, so that its requests take no lock either.

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
    callers: Mutex<CallerTable>,
    /// The waiting requests of all callers.
    waiting_requests: AtomicUsize,
}

/// The usage of callers that have requests or connections; may contain others, until the next cleanup.
#[derive(Default)]
struct CallerTable {
    usage: HashMap<SessionOwner, Arc<CallerUsage>>,
    /// The number of callers at which the next cleanup takes place.
    cleanup_at: usize,
}

/// Minimum number of callers for a cleanup.
const MIN_CLEANUP: usize = 64;

/// The usage of one caller.
pub(super) struct CallerUsage {
    owner: SessionOwner,
    waiting_requests: AtomicUsize,
    /// The bytes of its partially received bodies.
    pub(super) body_bytes: AtomicUsize,
    /// Its open connections.
    pub(super) connections: AtomicUsize,
}

/// The usage of a limit, in connections, requests or bytes.
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
            .usage
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

    /// Returns the usage of a caller, to count its requests.
    pub(super) fn caller(&self, owner: SessionOwner) -> Arc<CallerUsage> {
        let mut callers = lock(&self.callers);
        if callers.usage.len() >= callers.cleanup_at {
            // New references come only from the table, which is locked.
            callers
                .usage
                .retain(|_, usage| Arc::strong_count(usage) > 1);
            callers.cleanup_at = (callers.usage.len() * 2).max(MIN_CLEANUP);
        }
        let usage = callers.usage.entry(owner).or_insert_with_key(|owner| {
            Arc::new(CallerUsage {
                owner: owner.clone(),
                waiting_requests: AtomicUsize::new(0),
                body_bytes: AtomicUsize::new(0),
                connections: AtomicUsize::new(0),
            })
        });
        usage.clone()
    }

    /// Counts a waiting request of a caller.
    pub(super) fn add_request(&self, caller: &CallerUsage) {
        self.waiting_requests.fetch_add(1, Ordering::Relaxed);
        caller.waiting_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a waiting request of a caller.
    pub(super) fn remove_request(&self, caller: &CallerUsage) {
        self.waiting_requests.fetch_sub(1, Ordering::Relaxed);
        caller.waiting_requests.fetch_sub(1, Ordering::Relaxed);
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
        let caller = shares.caller(owner.clone());
        loop {
            let free = 100 - shares.waiting_requests.load(Ordering::Relaxed);
            if free == 0 || !shares.allow_request(owner, free) {
                return count;
            }
            shares.add_request(&caller);
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
        shares.add_request(&shares.caller(SessionOwner::caller("a")));
        assert_eq!(fill(&shares, &proxy), 74);
    }

    #[test]
    fn callers_without_requests_are_removed() {
        let shares = CallerShares::new(75);
        let waiting = shares.caller(SessionOwner::caller("waiting"));
        shares.add_request(&waiting);

        for number in 0..10_000 {
            let caller = shares.caller(SessionOwner::caller(number.to_string()));
            shares.add_request(&caller);
            shares.remove_request(&caller);
        }

        assert!(lock(&shares.callers).usage.len() <= MIN_CLEANUP);
        assert!(Arc::ptr_eq(
            &waiting,
            &shares.caller(SessionOwner::caller("waiting"))
        ));
        assert_eq!(shares.waiting_requests.load(Ordering::Relaxed), 1);
    }
}
