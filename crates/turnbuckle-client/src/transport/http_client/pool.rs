//! A pool of idle connections.
//!
//! Each request takes a connection from the pool, or makes one, and returns it at the end of the response. The list is
//! locked only to add or remove an entry.

use std::{
    fmt,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, sleep_until, timeout};

use crate::sync::lock;

/// Maximum time that a connection stays idle. Node and uvicorn close theirs after five seconds: a request that is sent at
/// that moment gets no response, and it is not known whether it had an effect.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 64;

/// The request half of a connection.
pub(super) type RequestSender = SendRequest<Full<Bytes>>;

/// The pool; clones share it.
#[derive(Clone, Default)]
pub(super) struct ConnectionPool(Arc<Mutex<IdleConnections>>);

#[derive(Default)]
struct IdleConnections {
    /// Ordered by the time since when they are idle: the most recently used is last.
    connections: Vec<(Instant, RequestSender)>,
    /// Whether a task is closing expired connections.
    is_pruning: bool,
}

impl ConnectionPool {
    /// Takes an idle connection; closed ones are removed.
    pub(super) fn take(&self) -> Option<PooledConnection> {
        let mut idle = lock(&self.0);
        while let Some((_, sender)) = idle.connections.pop() {
            if sender.is_ready() {
                return Some(self.wrap(sender));
            }
        }
        None
    }

    /// Wraps a new connection, so that it returns to the pool.
    pub(super) fn wrap(&self, sender: RequestSender) -> PooledConnection {
        PooledConnection {
            sender,
            pool: self.clone(),
            connect_time: None,
        }
    }

    fn insert(&self, sender: RequestSender) {
        let mut idle = lock(&self.0);
        if idle.connections.len() == MAX_IDLE_CONNECTIONS {
            idle.connections.remove(0);
        }
        idle.connections.push((Instant::now(), sender));
        if !idle.is_pruning {
            idle.is_pruning = true;
            tokio::spawn(prune(Arc::downgrade(&self.0)));
        }
    }
}

/// A connection that is used by one request. It is closed if it is dropped before the end of the response.
pub(super) struct PooledConnection {
    pub(super) sender: RequestSender,
    pub(super) pool: ConnectionPool,
    /// The time to connect, for the first request.
    pub(super) connect_time: Option<Duration>,
}

impl PooledConnection {
    /// Returns the connection to the pool, at the end of the response.
    pub(super) fn release(mut self) {
        if self.sender.is_ready() {
            return self.pool.insert(self.sender);
        }
        // The response ended before the request was written, or before the connection task noticed.
        tokio::spawn(async move {
            if let Ok(Ok(())) = timeout(IDLE_TIMEOUT, self.sender.ready()).await {
                self.pool.insert(self.sender);
            }
        });
    }
}

/// Closes expired connections, until none is idle.
async fn prune(idle: Weak<Mutex<IdleConnections>>) {
    while let Some(next) = idle.upgrade().and_then(|idle| lock(&idle).prune_expired()) {
        sleep_until(next).await;
    }
}

impl IdleConnections {
    /// Closes expired connections; returns the time of the next check.
    fn prune_expired(&mut self) -> Option<Instant> {
        let is_expired = |(since, _): &(Instant, RequestSender)| since.elapsed() >= IDLE_TIMEOUT;
        let expired = self.connections.partition_point(is_expired);
        self.connections.drain(..expired);
        let next = self
            .connections
            .first()
            .map(|(since, _)| *since + IDLE_TIMEOUT);
        self.is_pruning = next.is_some();
        next
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = lock(&self.0).connections.len();
        f.debug_struct("ConnectionPool")
            .field("waiting", &idle)
            .finish()
    }
}
