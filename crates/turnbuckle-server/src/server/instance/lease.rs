//! The lease of an instance, and what it publishes.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use turnbuckle_store::{
    ControlMessage, ControlSubscription, InstanceId, InstanceInbox, SessionId, Store, StoreError,
};

use super::REGISTRY_TIMEOUT;
use crate::{
    lifecycle::SessionUsers,
    sync::lock,
    tasks::{self, TaskRegistry},
};

/// Time without a renewal after which the instance is fenced. It is shorter than the lease, so that the instance stops before
/// others take over.
const FENCE_AFTER: Duration = Duration::from_secs(10);

/// Maximum number of ended sessions to remember until the control log repeats them.
const MAX_ENDED_SESSIONS: usize = 10_000;

/// The lease of an instance, and what its task needs.
pub(super) struct InstanceLease {
    pub(super) store: Store,
    pub(super) users: Arc<SessionUsers>,
    pub(super) tasks: Arc<TaskRegistry>,
    /// The reference point of `held_until`.
    created: Instant,
    /// The milliseconds from `created` until which the lease is respected by others.
    pub(super) held_until: AtomicU64,
    id: Mutex<Option<InstanceId>>,
    /// Sessions that ended here, until their message returns from the control log.
    pub(super) ended_here: Mutex<HashSet<SessionId>>,
}

impl InstanceLease {
    pub(super) fn new(store: Store, users: &Arc<SessionUsers>, tasks: &Arc<TaskRegistry>) -> Self {
        Self {
            store,
            users: users.clone(),
            tasks: tasks.clone(),
            created: Instant::now(),
            held_until: AtomicU64::new(0),
            id: Mutex::default(),
            ended_here: Mutex::default(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.millis(Instant::now()) < self.held_until.load(Ordering::Acquire)
    }

    pub(super) fn id(&self) -> Option<InstanceId> {
        *lock(&self.id)
    }

    pub(super) fn held_id(&self) -> Option<InstanceId> {
        self.is_held().then(|| self.id()).flatten()
    }

    pub(super) fn subscribe_to_control(&self) -> ControlSubscription {
        self.store.control.subscribe()
    }

    /// Joins under a new id.
    pub(super) async fn join(&self) -> Result<(InstanceId, InstanceInbox), StoreError> {
        let started = Instant::now();
        let id = in_time(self.store.instances.join()).await?;
        let inbox = self.store.instances.inbox(&id);
        *lock(&self.id) = Some(id);
        self.hold_from(started);
        tracing::debug!(%id, "joined the instances of the store");
        Ok((id, inbox))
    }

    /// Gives up the lease, and ends the tasks that still run here.
    pub(super) async fn leave(&self) {
        self.held_until.store(0, Ordering::Release);
        let Some(id) = lock(&self.id).take() else {
            return;
        };
        // Nothing else would end them: a lease that was given up does not expire.
        if let Err(error) = tasks::end_tasks_of(&self.store, &self.tasks, &id).await {
            tracing::warn!(%error, "cannot end the tasks of this instance; its lease expires");
            return;
        }
        if let Err(error) = self.store.instances.leave(&id).await {
            tracing::warn!(%error, "cannot leave the registry of instances; the lease expires");
        }
    }

    pub(super) async fn publish_session_end(&self, session: SessionId) {
        if self.id().is_some() {
            let mut ended_here = lock(&self.ended_here);
            if ended_here.len() < MAX_ENDED_SESSIONS {
                ended_here.insert(session);
            }
        }
        let message = ControlMessage::SessionEnded { session };
        if let Err(error) = self.publish(message).await {
            lock(&self.ended_here).remove(&session);
            tracing::warn!(%error, "cannot tell other instances that a session has ended");
        }
    }

    pub(super) async fn publish(&self, message: ControlMessage) -> Result<(), StoreError> {
        in_time(self.store.control.publish(message)).await
    }

    pub(super) fn hold_from(&self, renewed: Instant) {
        let until = self.millis(renewed + FENCE_AFTER);
        self.held_until.store(until, Ordering::Release);
    }

    fn millis(&self, at: Instant) -> u64 {
        let elapsed = at.saturating_duration_since(self.created).as_millis();
        u64::try_from(elapsed).unwrap_or(u64::MAX)
    }
}

/// Waits for a store no longer than it may take.
pub(crate) async fn in_time<T>(
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let done = timeout(REGISTRY_TIMEOUT, operation).await;
    done.unwrap_or_else(|elapsed| Err(StoreError::unavailable(elapsed)))
}
