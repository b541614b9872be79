//! Sessions over HTTP: lookup, the per-process state of active sessions, limits and expiry.

mod active;
pub(super) mod instances;
pub(super) mod limits;
mod refresher;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Response, StatusCode};
use active::store_unavailable;
pub(super) use active::{
    ActiveSession, ActiveSessionGuard, ActiveSessions, find_session, join_instances,
    missing_session_id, session_not_found,
};
pub(super) use refresher::SessionRefresher;
use tokio::time::{Instant, sleep};

use super::{
    body::ResponseBody,
    endpoint::{Endpoint, RequestHead},
    responses,
};
use crate::sync::lock;

/// Responds to DELETE: ends a session, its running calls and its streams.
pub(crate) async fn delete(endpoint: &Arc<Endpoint>, head: RequestHead) -> Response<ResponseBody> {
    let session_id = match find_session(endpoint, &head, None).await {
        Ok((session_id, _)) => session_id,
        Err(response) => return response,
    };
    let store = endpoint.server.store_ref();
    match store.sessions.remove(&session_id).await {
        Ok(true) => {}
        Ok(false) => return session_not_found(None),
        Err(error) => return store_unavailable(endpoint, None, &error),
    }
    endpoint.cleanup_session(session_id).await;
    responses::status_only(StatusCode::NO_CONTENT)
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
            self.sweep().await;
            for below in self.endpoints_below() {
                below.sweep().await;
            }
        }
    }

    /// Sweeps if it is due. For tower services, which run without a background task: they sweep when a session is created.
    pub(super) async fn sweep_if_due(&self) {
        if self.sweeper.is_due() {
            self.sweep().await;
        }
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
