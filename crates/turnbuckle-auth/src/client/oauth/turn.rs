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

/// How long it is remembered what was asked for.
const PERIOD: Duration = Duration::from_secs(10 * 60);

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
    /// When a person was asked, since the server had refused.
    asked: Vec<Instant>,
    /// When more was asked for, and what.
    step_ups: Vec<(Instant, Scopes)>,
    /// No renewal ahead of time before this.
    rest: Option<Instant>,
}

/// The right to renew; others wait until it is dropped.
pub(super) struct Turn {
    // Given back first, so that whoever of this client comes next finds it free.
    _store: Option<StoreLock>,
    _ours: OwnedMutexGuard<()>,
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

    /// Whether a person may be asked: not again and again, whatever a server says.
    pub(super) fn may_ask(&self) -> bool {
        const MOST: usize = 6;
        let mut memory = self.memory();
        memory.asked.retain(|at| at.elapsed() < PERIOD);
        let may = memory.asked.len() < MOST;
        if may {
            memory.asked.push(Instant::now());
        }
        may
    }

    /// Whether more may be asked for: not the same twice.
    pub(super) fn may_step_up(&self, needed: &Scopes) -> bool {
        const MOST: usize = 64;
        let mut memory = self.memory();
        memory.step_ups.retain(|(at, _)| at.elapsed() < PERIOD);
        let is_known = memory.step_ups.iter().any(|(_, before)| before == needed);
        let may = !is_known && memory.step_ups.len() < MOST;
        if may {
            memory.step_ups.push((Instant::now(), needed.clone()));
        }
        may
    }

    /// Lets the same be asked for again, since nobody has answered.
    pub(super) fn forget_step_up(&self, needed: &Scopes) {
        self.memory().step_ups.retain(|(_, it)| it != needed);
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
            _store: None,
            _ours: turn,
        }
    }

    /// Also keeps out everybody who shares the store.
    pub(super) fn with(self, lock: StoreLock) -> Turn {
        Turn {
            _store: Some(lock),
            ..self
        }
    }
}

/// Does something to its end, even if nobody waits for it any more.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only the end of the whole program ends it.
            Err(_) => std::future::pending().await,
        },
    }
}
