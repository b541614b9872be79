//! Sessions over HTTP: lookup, the per-process state of active sessions, limits and expiry.

mod active;
pub(super) mod instances;
pub(super) mod limits;
mod refresher;

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, ready},
    time::Duration,
};

use ::http::{Response, StatusCode};
use active::store_unavailable;
pub(super) use active::{
    ActiveSession, ActiveSessionGuard, ActiveSessions, find_session, join_instances,
    missing_session_id, session_not_found,
};
pub(super) use refresher::SessionRefresher;
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{Instant, sleep},
};
use turnbuckle_store::{SessionId, StoreError};

use super::{
    body::ResponseBody,
    endpoint::{Endpoint, RequestHead},
    responses,
};
use crate::{request::BoxFuture, sync::lock};

/// Responds to DELETE: ends a session, its running calls and its streams.
pub(crate) async fn delete(endpoint: &Arc<Endpoint>, head: RequestHead) -> Response<ResponseBody> {
    let session_id = match find_session(endpoint, &head, None).await {
        Ok((session_id, _)) => session_id,
        Err(response) => return response,
    };
    match run_to_end(remove(endpoint.clone(), session_id)).await {
        Ok(true) => responses::status_only(StatusCode::NO_CONTENT),
        Ok(false) => session_not_found(None),
        Err(error) => store_unavailable(endpoint, None, &error),
    }
}

async fn remove(endpoint: Arc<Endpoint>, session_id: SessionId) -> Result<bool, StoreError> {
    let sessions = &endpoint.server.store_ref().sessions;
    let is_removed = sessions.remove(&session_id).await?;
    if is_removed {
        endpoint.cleanup_session(session_id).await;
    }
    Ok(is_removed)
}

/// Runs an operation to its end, also if the client disconnects: what ends a session is not repeated.
async fn run_to_end<T: Send + 'static>(
    operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let mut run = ContinuedOperation(Some(Box::pin(operation)));
    poll_fn(|cx| {
        let Some(operation) = &mut run.0 else {
            return Poll::Pending;
        };
        let result = ready!(operation.as_mut().poll(cx));
        run.0 = None;
        Poll::Ready(result)
    })
    .await
}

/// An operation that a task continues if this is dropped before its end.
struct ContinuedOperation<T: Send + 'static>(Option<BoxFuture<Result<T, StoreError>>>);

impl<T: Send + 'static> Drop for ContinuedOperation<T> {
    fn drop(&mut self) {
        if let (Some(operation), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(operation);
        }
    }
}

/// Time between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// The time of the last sweep.
#[derive(Default)]
pub(super) struct ExpirySweeper {
    last_sweep: Mutex<Option<Instant>>,
}

impl ExpirySweeper {
    /// Returns whether a sweep is due, and if so, records it as done.
    fn is_due(&self) -> bool {
        let mut last_sweep = lock(&self.last_sweep);
        let now = Instant::now();
        let is_due = last_sweep.is_none_or(|last_sweep| now - last_sweep >= SWEEP_INTERVAL);
        if is_due {
            *last_sweep = Some(now);
        }
        is_due
    }
}

impl Endpoint {
    /// Sweeps periodically until the future is dropped.
    pub(super) async fn sweep_regularly(self: Arc<Self>) {
        loop {
            sleep(SWEEP_INTERVAL).await;
            let _ = self.spawn_sweep().await;
            for below in self.endpoints_below() {
                let _ = below.spawn_sweep().await;
            }
        }
    }

    /// Sweeps if it is due. For tower services, which run without a background task: they sweep when a session is created.
    pub(super) fn sweep_if_due(self: &Arc<Self>) {
        if self.sweeper.is_due() {
            self.spawn_sweep();
        }
    }

    /// Sweeps in a task of its own: the store reports each expired session once, so a sweep must not be dropped.
    fn spawn_sweep(self: &Arc<Self>) -> JoinHandle<()> {
        let endpoint = self.clone();
        tokio::spawn(async move { endpoint.sweep().await })
    }

    async fn sweep(&self) {
        if !self.server.may_serve_sessions() {
            // Another instance sweeps.
            return;
        }
        let store = self.server.store_ref();
        match store.sessions.sweep().await {
            Ok(expired) => {
                for session in expired {
                    self.cleanup_session(session).await;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot remove expired sessions"),
        }
        if let Err(error) = store.events.sweep().await {
            tracing::warn!(%error, "cannot remove expired events");
        }
        if let Err(error) = store.request_states.sweep().await {
            tracing::warn!(%error, "cannot remove expired journals");
        }
        if let Err(error) = store.tasks.sweep().await {
            tracing::warn!(%error, "cannot remove expired tasks");
        }
    }
}
