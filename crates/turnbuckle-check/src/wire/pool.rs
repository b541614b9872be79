//! Connections that are kept for the next request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{task::JoinHandle, time::Instant};
use turnbuckle_client::http::Http;

/// How many connections wait for the next request.
const MOST: usize = 4;

/// How long one waits: less than any server does, so that none is closed while something is sent on it.
const IDLE: Duration = Duration::from_secs(2);

/// Connections to one server that wait for the next request; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Idle>>>);

struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection. Dropping it closes it.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Pool {
    /// Sends a request on a connection that waits, or on a new one.
    pub(crate) async fn send(
        &self,
        http: &Http,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), String> {
        while let Some(mut connection) = self.take() {
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                // Nothing of it has left: the server has closed the connection meanwhile, as it may.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(reason(failed.error())),
                },
            }
        }
        let mut connection = Connection::open(http).await?;
        let response = connection.sender.send_request(request).await;
        Ok((response.map_err(|error| reason(&error))?, connection))
    }

    /// Keeps a connection whose last response was read to its end.
    pub(crate) fn keep(&self, connection: Connection) {
        let mut idle = self.lock();
        if !connection.sender.is_closed() && idle.len() < MOST {
            let since = Instant::now();
            idle.push(Idle { connection, since });
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        idle.retain(|idle| idle.since.elapsed() < IDLE);
        idle.pop().map(|idle| idle.connection)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    async fn open(http: &Http) -> Result<Self, String> {
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

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Says why, and what was the reason for that.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |&error| error.source());
    let all: Vec<_> = all.map(ToString::to_string).collect();
    all.join(": ")
}
