//! A pool of idle HTTP connections.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{task::JoinHandle, time::Instant};
use turnbuckle_client::http::HttpTarget;

use crate::lock;

/// The maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 4;

/// The idle timeout: shorter than that of servers, so that they do not close a connection in use.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Idle connections to one server; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ConnectionPool {
    idle: Arc<Mutex<Vec<IdleConnection>>>,
    has_responded: Arc<AtomicBool>,
}

/// A request without a response.
pub(crate) struct ExchangeError {
    /// The reason.
    pub(crate) reason: String,
    /// The connection was open, so the server may have received the request.
    pub(crate) was_connected: bool,
}

struct IdleConnection {
    connection: PooledConnection,
    since: Instant,
}

/// A connection that closes on drop.
pub(crate) struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl ConnectionPool {
    /// Sends a request on an idle connection, or on a new one.
    pub(crate) async fn send(
        &self,
        http: &HttpTarget,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, PooledConnection), ExchangeError> {
        while let Some(mut connection) = self.take() {
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok(self.responded(response, connection)),
                // The server closed the idle connection before anything was sent: try the next.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ExchangeError::of_connection(failed.error())),
                },
            }
        }
        let opened = PooledConnection::open(http).await;
        let mut connection = opened.map_err(ExchangeError::before_connection)?;
        match connection.sender.send_request(request).await {
            Ok(response) => Ok(self.responded(response, connection)),
            Err(error) => Err(ExchangeError::of_connection(&error)),
        }
    }

    /// Returns whether the server has ever responded.
    pub(crate) fn has_responded(&self) -> bool {
        self.has_responded.load(Ordering::Relaxed)
    }

    fn responded(
        &self,
        response: Response<Incoming>,
        connection: PooledConnection,
    ) -> (Response<Incoming>, PooledConnection) {
        self.has_responded.store(true, Ordering::Relaxed);
        (response, connection)
    }

    /// Returns a connection to the pool after its response was read to the end.
    pub(crate) fn release(&self, connection: PooledConnection) {
        let mut idle = self.lock();
        if !connection.sender.is_closed() && idle.len() < MAX_IDLE_CONNECTIONS {
            let since = Instant::now();
            idle.push(IdleConnection { connection, since });
        }
    }

    fn take(&self) -> Option<PooledConnection> {
        let mut idle = self.lock();
        idle.retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT);
        idle.pop().map(|idle| idle.connection)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        lock(&self.idle)
    }
}

impl ExchangeError {
    /// The request could not be sent.
    pub(crate) fn before_connection(reason: String) -> Self {
        Self {
            reason,
            was_connected: false,
        }
    }

    fn of_connection(error: &dyn std::error::Error) -> Self {
        Self {
            reason: reason(error),
            was_connected: true,
        }
    }
}

impl PooledConnection {
    async fn open(http: &HttpTarget) -> Result<Self, String> {
        let stream = http.dial().await.map_err(|error| reason(&error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| reason(&error))?;
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, task })
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns an error with its sources.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |&error| error.source());
    let all: Vec<_> = all.map(ToString::to_string).collect();
    all.join(": ")
}
