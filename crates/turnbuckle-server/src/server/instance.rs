//! A server as one of the instances that share a store: its lease, and the messages of the others.
//!
//! Nothing in this module runs if the store is not shared.

mod lease;
mod lease_task;

use std::{sync::Arc, time::Duration};

use lease::InstanceLease;
pub(crate) use lease::in_time;
use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, timeout},
};
use turnbuckle_store::{ControlMessage, InstanceId, SessionId, Store, StoreError};

use crate::{lifecycle::SessionUsers, tasks::TaskRegistry};

/// Maximum time for the registry to answer, for stores without a timeout of their own.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(4);

/// The membership of a server among the instances of its store. Clones of the server share it.
///
/// The server joins with its first request of a session. One task renews the lease and receives messages; it ends with
/// the server.
pub(crate) struct ServerInstance {
    lease: Arc<InstanceLease>,
    task: Mutex<LeaseTask>,
}

#[derive(Default)]
struct LeaseTask {
    /// Set once the server has joined.
    running: Option<JoinHandle<()>>,
    /// The time of the last attempt to join that failed.
    failed: Option<Instant>,
}

impl ServerInstance {
    /// Returns the membership of a server with this store, or `None` if the store is not shared.
    pub(crate) fn new(
        store: &Store,
        users: &Arc<SessionUsers>,
        tasks: &Arc<TaskRegistry>,
    ) -> Option<Arc<Self>> {
        store.is_shared().then(|| {
            Arc::new(Self {
                lease: Arc::new(InstanceLease::new(store.clone(), users, tasks)),
                task: Mutex::default(),
            })
        })
    }

    /// Returns whether the server has a lease that others respect. Otherwise it has not joined, or it is fenced: it must
    /// not write for sessions.
    pub(crate) fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Returns the id of the instance. While it is fenced, this is the id that it had.
    pub(crate) fn id(&self) -> Option<InstanceId> {
        self.lease.id()
    }

    /// Returns the id of the instance, after it has joined.
    ///
    /// # Errors
    ///
    /// If the registry cannot be reached, or the server is fenced.
    pub(crate) async fn join(&self) -> Result<InstanceId, StoreError> {
        if let Some(id) = self.lease.held_id() {
            return Ok(id);
        }
        let asked = Instant::now();
        let mut task = self.task.lock().await;
        let has_failed = task.failed.is_some_and(|failed| failed > asked);
        let is_running = task
            .running
            .as_ref()
            .is_some_and(|running| !running.is_finished());
        if has_failed || is_running {
            // An earlier request has tried in this time, or the task of a fenced server is trying.
            return self.lease.held_id().ok_or_else(fenced);
        }
        // Subscribed before others can learn of this instance.
        let control = self.lease.subscribe_to_control();
        match self.lease.join().await {
            Ok((id, inbox)) => {
                let lease = self.lease.clone();
                let run = lease.run(id, inbox, control);
                task.running = Some(tokio::spawn(run));
                Ok(id)
            }
            Err(error) => {
                task.failed = Some(Instant::now());
                Err(error)
            }
        }
    }

    /// Gives up the lease: for a server that has stopped. Tasks that still run here end.
    pub(crate) async fn leave(&self) {
        let mut task = self.task.lock().await;
        let Some(running) = task.running.take() else {
            return;
        };
        running.abort();
        if timeout(REGISTRY_TIMEOUT, self.lease.leave()).await.is_err() {
            tracing::warn!("cannot leave the registry of instances in time; the lease expires");
        }
    }

    /// Tells the other instances that a session has ended.
    pub(crate) async fn publish_session_end(&self, session: SessionId) {
        self.lease.publish_session_end(session).await;
    }

    /// Publishes a message to all instances.
    pub(crate) async fn publish(&self, message: ControlMessage) -> Result<(), StoreError> {
        self.lease.publish(message).await
    }
}

impl Drop for ServerInstance {
    fn drop(&mut self) {
        if let Some(running) = &self.task.get_mut().running {
            running.abort();
        }
    }
}

fn fenced() -> StoreError {
    StoreError::unavailable("this instance could not renew its lease")
}
