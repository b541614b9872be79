//! Keeps sessions in use from expiring: touches them in the store, all of them together.
//!
//! A session is in use while a call runs, a stream is open or a connection keeps it active. If the store does not restart the
//! idle timeout when it loads a session for a request, those with a request since the last time are touched too.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;
use turnbuckle_store::SessionId;

use super::active::{SHARDS, SessionHasher, shard_of};
use crate::{http::endpoint::Endpoint, sync::lock};

/// Minimum time between two rounds, whatever the store says.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of sessions that are touched by one operation of the store.
const MAX_TOUCHED: usize = 1_024;

/// The task that touches the sessions in use, while there are any.
pub(in crate::http) struct SessionRefresher {
    is_running: AtomicBool,
    /// The sessions with a request since the last time, if the store does not touch them.
    requested: [Mutex<HashSet<SessionId, SessionHasher>>; SHARDS],
}

impl Default for SessionRefresher {
    fn default() -> Self {
        Self {
            is_running: AtomicBool::new(false),
            requested: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl SessionRefresher {
    /// Starts the task if it is not running. Sessions that are in use before this call do not expire.
    pub(in crate::http) fn start(endpoint: &Arc<Endpoint>) {
        let is_running = &endpoint.session_refresher.is_running;
        if !is_running.load(Ordering::SeqCst) && !is_running.swap(true, Ordering::SeqCst) {
            tokio::spawn(run(Arc::clone(endpoint)));
        }
    }

    /// Records a request of a session that the store has not touched.
    #[cold]
    pub(super) fn note_request(endpoint: &Arc<Endpoint>, session_id: SessionId) {
        endpoint.session_refresher.add_requested(&[session_id]);
        Self::start(endpoint);
    }

    fn add_requested(&self, sessions: &[SessionId]) {
        for session_id in sessions {
            lock(&self.requested[shard_of(session_id)]).insert(*session_id);
        }
    }

    /// Returns the sessions to touch.
    fn take_used(&self, endpoint: &Endpoint) -> Vec<SessionId> {
        let mut used = endpoint.active_sessions.in_use();
        for shard in &self.requested {
            used.extend(std::mem::take(&mut *lock(shard)));
        }
        used.sort_unstable();
        used.dedup();
        used
    }
}

async fn run(endpoint: Arc<Endpoint>) {
    let interval = endpoint.server.store_ref().sessions.touch_interval();
    let interval = interval.max(MIN_INTERVAL);
    let refresher = &endpoint.session_refresher;
    loop {
        tokio::select! {
            biased;
            // The rest of the shutdown is shorter than an idle timeout.
            () = endpoint.closed() => return,
            () = sleep(interval) => {}
        }
        let mut used = refresher.take_used(&endpoint);
        if used.is_empty() {
            refresher.is_running.swap(false, Ordering::SeqCst);
            // A session that came into use in between has found the task running.
            used = refresher.take_used(&endpoint);
            if used.is_empty() || refresher.is_running.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        for some in used.chunks(MAX_TOUCHED) {
            touch(&endpoint, some).await;
        }
    }
}

/// Touches sessions. Those that the store no longer has end here.
async fn touch(endpoint: &Endpoint, sessions: &[SessionId]) {
    let found = match endpoint.server.store_ref().sessions.touch(sessions).await {
        Ok(found) => found,
        Err(error) => {
            // They are touched again long before they expire.
            endpoint.log_limiters.store_failed(&error);
            endpoint.session_refresher.add_requested(sessions);
            return;
        }
    };
    let lost = sessions.iter().zip(found).filter(|(_, found)| !found);
    lost.for_each(|(session_id, _)| endpoint.active_sessions.close(session_id));
}
