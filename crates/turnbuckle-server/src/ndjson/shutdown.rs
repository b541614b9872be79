//! Shutdown of a connection: running calls get a grace period, and queued output is written.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use tokio::{select, time::timeout};

use super::connection::NdjsonConnection;
use crate::{request::BoxFuture, tasks};

/// Grace period for calls after the end of input.
const INPUT_END_GRACE: Duration = Duration::from_secs(5);
/// Grace period for calls, and then for writing, after a shutdown request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// Time limit for dropping handlers. A handler that blocks its thread cannot be dropped.
const DROP_TIMEOUT: Duration = Duration::from_millis(100);

/// Serves one connection until its reader and writer are done.
pub(crate) async fn run(
    connection: Arc<NdjsonConnection>,
    reading: impl Future<Output = io::Result<()>>,
    writing: impl Future<Output = io::Result<()>>,
    mut shutdown: ShutdownRequest,
) -> io::Result<()> {
    let open = ConnectionGuard(connection);
    let mut writing = pin!(writing);
    let ended = select! {
        ended = read_until_end(&open.0, reading, &mut shutdown) => ended,
        // Without a reader on the other side, responses are useless.
        written = &mut writing => return ignore_disconnect(written),
    };
    let written = select! {
        written = &mut writing => written,
        () = shutdown.wait() => timeout(SHUTDOWN_GRACE, writing).await.unwrap_or(Ok(())),
    };
    ignore_disconnect(ended.and(written))
}

async fn read_until_end(
    connection: &NdjsonConnection,
    reading: impl Future<Output = io::Result<()>>,
    shutdown: &mut ShutdownRequest,
) -> io::Result<()> {
    let ended = select! {
        ended = reading => Some(ended),
        () = shutdown.wait() => None,
    };
    if let Some(ended) = ended {
        select! {
            () = connection.drain(INPUT_END_GRACE) => return ended,
            () = shutdown.wait() => {}
        }
    }
    connection.drain(SHUTDOWN_GRACE).await;
    Ok(())
}

impl NdjsonConnection {
    /// Lets running calls finish within the grace period, drops the others, and ends the writer.
    pub(crate) async fn drain(&self, grace: Duration) {
        self.connection.close();
        self.runtime.close();
        if timeout(grace, self.calls.acquire_many(self.max_in_flight))
            .await
            .is_err()
        {
            self.runtime.cancel_all();
            let _ = timeout(DROP_TIMEOUT, self.calls.acquire_many(self.max_in_flight)).await;
        }
        self.stop_notifier();
        self.queue.end();
    }

    /// Ends the connection and everything that belongs to it.
    ///
    /// The queue is ended first: a call that starts concurrently and sees an open queue is cancelled below.
    pub(crate) fn end(&self) {
        self.queue.end();
        self.connection.close();
        self.runtime.close();
        self.runtime.cancel_all();
        self.stop_notifier();
        tasks::session_ended(&self.server, self.connection.id());
    }
}

/// Ends a connection when dropped.
struct ConnectionGuard(Arc<NdjsonConnection>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A future shutdown request, which stays requested.
pub(crate) struct ShutdownRequest(Option<BoxFuture<()>>);

impl ShutdownRequest {
    pub(crate) fn new(requested: BoxFuture<()>) -> Self {
        Self(Some(requested))
    }

    /// A shutdown that is never requested.
    pub(crate) fn never() -> Self {
        Self::new(Box::pin(std::future::pending()))
    }

    /// Waits for the request. Returns immediately after the first time.
    pub(crate) async fn wait(&mut self) {
        if let Some(requested) = &mut self.0 {
            requested.await;
            self.0 = None;
        }
    }
}

/// Treats a disconnect as a normal end.
fn ignore_disconnect(outcome: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    match outcome {
        Err(error)
            if matches!(
                error.kind(),
                BrokenPipe | ConnectionAborted | ConnectionReset
            ) =>
        {
            tracing::debug!(%error, "the peer disconnected");
            Ok(())
        }
        outcome => outcome,
    }
}
