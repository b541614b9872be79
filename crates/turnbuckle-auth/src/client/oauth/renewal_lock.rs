//! The lock for renewals, and the history that limits them.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    sync::{self, OnceCell, OwnedMutexGuard},
    time::Instant,
};

use super::renewal::RenewalGoal;
use crate::{AuthorizationError, Scopes, client::store::StoreLock, sync::lock};

/// Time for which prompts and step-ups are counted.
const HISTORY_PERIOD: Duration = Duration::from_secs(10 * 60);

/// The renewals of one client.
#[derive(Default)]
pub(super) struct RenewalState {
    /// Set when the store was read for the first time.
    pub(super) loaded: OnceCell<()>,
    lock: Arc<sync::Mutex<()>>,
    history: Mutex<RenewalHistory>,
}

#[derive(Default)]
struct RenewalHistory {
    /// Number of failed renewals.
    failure_count: u64,
    /// The last failure, and its goal.
    last_failure: Option<(RenewalGoal, AuthorizationError)>,
    /// Times when the user was prompted because of a response of the server.
    prompts: Vec<Instant>,
    /// Times and scopes of step-ups.
    step_ups: Vec<(Instant, Scopes)>,
    /// No proactive refresh before this time.
    backoff_until: Option<Instant>,
}

/// The right to renew; released on drop.
pub(super) struct RenewalLock {
    // Dropped first, so that the next task of this client finds the store unlocked.
    _store: Option<StoreLock>,
    _own: OwnedMutexGuard<()>,
}

impl RenewalState {
    /// Waits until no other task of this client renews.
    pub(super) async fn lock(&self) -> RenewalLock {
        RenewalLock::new(Arc::clone(&self.lock).lock_owned().await)
    }

    /// Returns the lock if it is free.
    pub(super) fn try_lock(&self) -> Option<RenewalLock> {
        let lock = Arc::clone(&self.lock).try_lock_owned().ok()?;
        Some(RenewalLock::new(lock))
    }

    /// Returns the number of failed renewals, for [`failure_since`](Self::failure_since).
    pub(super) fn failure_count(&self) -> u64 {
        self.history().failure_count
    }

    /// Returns the error of a renewal with the same goal that failed since then.
    pub(super) fn failure_since(
        &self,
        failure_count: u64,
        goal: &RenewalGoal,
    ) -> Option<AuthorizationError> {
        let history = self.history();
        let (of, failure) = history.last_failure.as_ref()?;
        (history.failure_count > failure_count && of == goal).then(|| failure.clone())
    }

    pub(super) fn record_failure(&self, goal: RenewalGoal, failure: &AuthorizationError) {
        let mut history = self.history();
        history.failure_count += 1;
        history.last_failure = Some((goal, failure.clone()));
    }

    /// Returns whether the user may be prompted, and counts it. Limited, because a server could cause prompts forever.
    pub(super) fn may_prompt_user(&self) -> bool {
        const MAX_ENTRIES: usize = 6;
        let mut history = self.history();
        history.prompts.retain(|at| at.elapsed() < HISTORY_PERIOD);
        let allowed = history.prompts.len() < MAX_ENTRIES;
        if allowed {
            history.prompts.push(Instant::now());
        }
        allowed
    }

    /// Returns whether these scopes may be requested, and counts it. The same scopes are requested only once.
    pub(super) fn may_step_up(&self, needed: &Scopes) -> bool {
        const MAX_ENTRIES: usize = 64;
        let mut history = self.history();
        history
            .step_ups
            .retain(|(at, _)| at.elapsed() < HISTORY_PERIOD);
        let is_known = history.step_ups.iter().any(|(_, before)| before == needed);
        let allowed = !is_known && history.step_ups.len() < MAX_ENTRIES;
        if allowed {
            history.step_ups.push((Instant::now(), needed.clone()));
        }
        allowed
    }

    /// Allows the same scopes to be requested again.
    pub(super) fn forget_step_up(&self, needed: &Scopes) {
        self.history().step_ups.retain(|(_, it)| it != needed);
    }

    /// Suspends proactive refreshes after a failure; otherwise every request would wait for one.
    pub(super) fn back_off(&self) {
        const BACKOFF: Duration = Duration::from_secs(30);
        self.history().backoff_until = Some(Instant::now() + BACKOFF);
    }

    pub(super) fn is_backing_off(&self) -> bool {
        self.history()
            .backoff_until
            .is_some_and(|end| Instant::now() < end)
    }

    fn history(&self) -> MutexGuard<'_, RenewalHistory> {
        lock(&self.history)
    }
}

impl RenewalLock {
    fn new(lock: OwnedMutexGuard<()>) -> RenewalLock {
        RenewalLock {
            _store: None,
            _own: lock,
        }
    }

    /// Adds the lock of the store, which excludes other processes.
    pub(super) fn with_store_lock(self, lock: StoreLock) -> RenewalLock {
        RenewalLock {
            _store: Some(lock),
            ..self
        }
    }
}

/// Runs a future to completion, even if the caller is cancelled.
pub(super) async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}
