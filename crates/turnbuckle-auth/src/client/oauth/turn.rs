//! One renewal at a time, and what is remembered of those before.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{self, OnceCell, OwnedMutexGuard},
    time::Instant,
};

use super::renew::Wanted;
use crate::{Failure, Scopes, client::store::StoreLock};

/// The renewals of one client.
#[derive(Default)]
pub(super) struct Renewals {
    /// Set when the store was asked for the first time.
    pub(super) loaded: OnceCell<()>,
    turn: Arc<sync::Mutex<()>>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// How many renewals have failed.
    failures: u64,
    /// The last failure, and what was wanted.
    last: Option<(Wanted, Failure)>,
    /// What somebody did not want to grant.
    denied: Vec<Scopes>,
    /// When more was asked for.
    step_ups: Vec<Instant>,
    /// No renewal ahead of time before this.
    rest: Option<Instant>,
}

/// The right to renew; others wait until every clone is dropped.
#[derive(Clone)]
pub(super) struct Turn {
    _ours: Arc<OwnedMutexGuard<()>>,
    _store: Option<Arc<StoreLock>>,
}

impl Renewals {
    /// Waits until nobody else of this client renews.
    pub(super) async fn turn(&self) -> Turn {
        Turn::of(Arc::clone(&self.turn).lock_owned().await)
    }

    /// Returns the right to renew unless somebody has it.
    pub(super) fn try_turn(&self) -> Option<Turn> {
        let turn = Arc::clone(&self.turn).try_lock_owned().ok()?;
        Some(Turn::of(turn))
    }

    /// Returns how many renewals have failed, to be compared later.
    pub(super) fn failures(&self) -> u64 {
        self.memory().failures
    }

    /// Returns why others failed in the meantime to get just what is wanted.
    pub(super) fn failure_since(&self, failures: u64, wanted: &Wanted) -> Option<Failure> {
        let memory = self.memory();
        let (of, failure) = memory.last.as_ref()?;
        (memory.failures > failures && of == wanted).then(|| failure.clone())
    }

    pub(super) fn has_failed(&self, wanted: Wanted, failure: &Failure) {
        let mut memory = self.memory();
        memory.failures += 1;
        memory.last = Some((wanted, failure.clone()));
    }

    /// Remembers what somebody did not want to grant.
    pub(super) fn was_denied(&self, scopes: Scopes) {
        const MOST: usize = 64;
        let mut memory = self.memory();
        if memory.denied.len() == MOST {
            memory.denied.remove(0);
        }
        memory.denied.push(scopes);
    }

    /// Whether more may be asked for: not what was denied, and not again and again.
    pub(super) fn may_step_up(&self, scopes: &Scopes) -> bool {
        const MOST: usize = 5;
        const PERIOD: Duration = Duration::from_secs(10 * 60);
        let mut memory = self.memory();
        memory.step_ups.retain(|at| at.elapsed() < PERIOD);
        if memory.denied.contains(scopes) || memory.step_ups.len() == MOST {
            return false;
        }
        memory.step_ups.push(Instant::now());
        true
    }

    /// Leaves off renewing ahead of time for a while: it has failed, and every request would wait for it.
    pub(super) fn rest(&self) {
        const REST: Duration = Duration::from_secs(30);
        self.memory().rest = Some(Instant::now() + REST);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.memory().rest.is_some_and(|end| Instant::now() < end)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn of(turn: OwnedMutexGuard<()>) -> Turn {
        Turn {
            _ours: Arc::new(turn),
            _store: None,
        }
    }

    /// Also keeps out everybody who shares the store.
    pub(super) fn with(self, lock: StoreLock) -> Turn {
        Turn {
            _store: Some(Arc::new(lock)),
            ..self
        }
    }
}
