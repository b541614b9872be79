//! How a connection ends: what runs gets a little time, what was said is written.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use tokio::{select, time::timeout};

use super::connection::Connection;
use crate::{exchange::BoxFuture, tasks};

/// How long calls may go on after the end of input.
const AFTER_INPUT: Duration = Duration::from_secs(5);
/// How long calls, and then writing, may go on after a shutdown was asked for.
const AFTER_SHUTDOWN: Duration = Duration::from_secs(1);
/// How long dropping handlers may take; one that blocks its thread cannot be dropped.
const DROPPING: Duration = Duration::from_millis(100);

/// Serves one connection, given what reads its input and what writes its output, until both are done.
pub(crate) async fn run(
    connection: Arc<Connection>,
    reading: impl Future<Output = io::Result<()>>,
    writing: impl Future<Output = io::Result<()>>,
    mut shutdown: Shutdown,
) -> io::Result<()> {
    let open = Open(connection);
    let mut writing = pin!(writing);
    let ended = select! {
        ended = read_to_the_end(&open.0, reading, &mut shutdown) => ended,
        // Whoever does not listen any more needs no answers.
        written = &mut writing => return unless_the_peer_left(written),
    };
    let written = select! {
        written = &mut writing => written,
        () = shutdown.came() => timeout(AFTER_SHUTDOWN, writing).await.unwrap_or(Ok(())),
    };
    unless_the_peer_left(ended.and(written))
}

async fn read_to_the_end(
    connection: &Connection,
    reading: impl Future<Output = io::Result<()>>,
    shutdown: &mut Shutdown,
) -> io::Result<()> {
    let ended = select! {
        ended = reading => Some(ended),
        () = shutdown.came() => None,
    };
    if let Some(ended) = ended {
        select! {
            () = connection.wind_down(AFTER_INPUT) => return ended,
            () = shutdown.came() => {}
        }
    }
    connection.wind_down(AFTER_SHUTDOWN).await;
    Ok(())
}

impl Connection {
    /// Lets running calls finish for a while, drops the others, and lets the writer end.
    pub(crate) async fn wind_down(&self, patience: Duration) {
        self.connected.close();
        self.live.hang_up();
        if timeout(patience, self.calls.acquire_many(self.max_in_flight))
            .await
            .is_err()
        {
            self.live.cancel_all();
            let _ = timeout(DROPPING, self.calls.acquire_many(self.max_in_flight)).await;
        }
        self.stop_announcing();
        self.sink.end();
    }

    /// Ends everything that belongs to it, at once.
    ///
    /// The sink first: whoever begins a call meanwhile and then sees that the sink has not ended can be sure that
    /// the call is ended here.
    pub(crate) fn end(&self) {
        self.sink.end();
        self.connected.close();
        self.live.hang_up();
        self.live.cancel_all();
        self.stop_announcing();
        tasks::session_ended(&self.server, self.connected.id());
    }
}

/// Ends everything that belongs to a connection when whoever serves it stops, however that happens.
struct Open(Arc<Connection>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A wish to end that may come or not, and once it came stays.
pub(crate) struct Shutdown(Option<BoxFuture<()>>);

impl Shutdown {
    pub(crate) fn new(wish: BoxFuture<()>) -> Self {
        Self(Some(wish))
    }

    /// A wish that never comes.
    pub(crate) fn never() -> Self {
        Self::new(Box::pin(std::future::pending()))
    }

    /// Waits for it; at once if it came before.
    pub(crate) async fn came(&mut self) {
        if let Some(wish) = &mut self.0 {
            wish.await;
            self.0 = None;
        }
    }
}

/// A peer that goes away without a word is an ordinary end.
fn unless_the_peer_left(outcome: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    match outcome {
        Err(error)
            if matches!(
                error.kind(),
                BrokenPipe | ConnectionAborted | ConnectionReset
            ) =>
        {
            tracing::debug!(%error, "the peer left");
            Ok(())
        }
        outcome => outcome,
    }
}
