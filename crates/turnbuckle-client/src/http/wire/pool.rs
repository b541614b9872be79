//! Connections that wait for the next request.
//!
//! One is taken from here, or made, for each request, and comes back with the end of the response. That is all that
//! callers share: a list, locked for as long as it takes to put something on its end or to take it off again.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a connection without work is kept. Most servers close theirs sooner.
const IDLE: Duration = Duration::from_secs(30);

/// How many of them are kept.
const MAX_IDLE: usize = 64;

/// The end of a connection that takes requests.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// The connections that wait; clones share them.
#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Idle>>);

#[derive(Default)]
struct Idle {
    /// With the time since when they wait: the one that was used last is at the end.
    connections: Vec<(Instant, Sender)>,
    /// Whether somebody lets go of those that wait for too long.
    is_tended: bool,
}

impl Pool {
    /// Takes a connection that waits. Those that the server has closed are let go.
    pub(super) fn take(&self) -> Option<Lease> {
        let mut idle = lock(&self.0);
        while let Some((_, sender)) = idle.connections.pop() {
            if sender.is_ready() {
                return Some(self.lease(sender));
            }
        }
        None
    }

    /// Looks after a connection that was just made.
    pub(super) fn lease(&self, sender: Sender) -> Lease {
        Lease {
            sender,
            pool: self.clone(),
        }
    }

    fn put(&self, sender: Sender) {
        let mut idle = lock(&self.0);
        if idle.connections.len() == MAX_IDLE {
            idle.connections.remove(0);
        }
        idle.connections.push((Instant::now(), sender));
        if !idle.is_tended {
            idle.is_tended = true;
            tokio::spawn(tend(Arc::downgrade(&self.0)));
        }
    }
}

/// A connection that works for one request. Dropped before the response has ended, it is closed.
pub(super) struct Lease {
    pub(super) sender: Sender,
    pool: Pool,
}

impl Lease {
    /// Gives the connection back: the response has ended.
    pub(super) fn give_back(mut self) {
        if self.sender.is_ready() {
            return self.pool.put(self.sender);
        }
        // The response has been faster than the request, or than the task that reads it.
        tokio::spawn(async move {
            if let Ok(Ok(())) = timeout(IDLE, self.sender.ready()).await {
                self.pool.put(self.sender);
            }
        });
    }
}

/// Lets go of connections that wait for too long, until none waits.
async fn tend(idle: Weak<Mutex<Idle>>) {
    while let Some(next) = idle.upgrade().and_then(|idle| lock(&idle).let_go()) {
        sleep_until(next).await;
    }
}

impl Idle {
    /// Closes what has waited for too long, and says when to look again.
    fn let_go(&mut self) -> Option<Instant> {
        let late = |(since, _): &(Instant, Sender)| since.elapsed() >= IDLE;
        let expired = self.connections.partition_point(late);
        self.connections.drain(..expired);
        let next = self.connections.first().map(|(since, _)| *since + IDLE);
        self.is_tended = next.is_some();
        next
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = lock(&self.0).connections.len();
        f.debug_struct("Pool").field("waiting", &waiting).finish()
    }
}
