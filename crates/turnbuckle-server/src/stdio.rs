//! Newline-delimited JSON over standard input and output: one client, for the life of the process.
//!
//! ```no_run
//! # use turnbuckle_server::{Server, Tool};
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let now = Tool::new("now", async || Ok("half past nine".to_owned()));
//!     turnbuckle_server::stdio::serve(Server::new("clock", "1.0.0").tool(now)).await
//! }
//! ```
//!
//! Standard output is reserved for the protocol. On Unix the original descriptors are replaced: output of handlers,
//! libraries and child processes goes to standard error, and their standard input is empty. Other systems have no such
//! protection: do not print.
//!
//! A separate thread reads and polls each handler once; responses that are ready are written without waking another
//! thread. A handler that computes for long without yielding delays later messages: use
//! [`Tool::blocking`](crate::Tool::blocking).
//!
//! With this thread, a single-threaded runtime (`#[tokio::main(flavor = "current_thread")]`) is sufficient for most
//! servers and starts faster.

#[cfg(not(unix))]
#[path = "stdio/portable.rs"]
mod streams;
#[cfg(unix)]
#[path = "stdio/unix.rs"]
mod streams;

use std::{future::Future, io, sync::Arc, thread};

use tokio::{runtime::Handle, select, sync::oneshot};
use turnbuckle_protocol::codec::ndjson::LineDecoder;

use self::streams::{StdinReader, StdoutWriter, TerminationSignals};
use crate::{
    Server,
    ndjson::{
        self, NdjsonConnection, NdjsonOptions, ShutdownRequest, WriteQueue, connection_options,
    },
};

/// Size of reads, and of writes by the reading thread: the capacity of a pipe.
const BUFFER_BYTES: usize = 64 * 1024;

/// Input bytes after which responses are flushed, so that the client can read while the rest is processed.
const FLUSH_INTERVAL_BYTES: usize = 4 * 1024;

/// Serves the client on standard input and output.
///
/// Returns when the client has ended the input and all requests have responses. Calls still running after 5 seconds are
/// dropped. SIGINT and SIGTERM (elsewhere Ctrl-C) also end it, with one second for running calls. [`Stdio`] has
/// options.
///
/// Can be called once per process, because it takes over standard input and output. After a signal the reading thread
/// may still block on input; the process ends when `main` returns.
///
/// # Errors
///
/// If reading or writing fails, except by a disconnect.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn serve(server: Server) -> io::Result<()> {
    Stdio::new(server).serve().await
}

/// Serves the client on standard input and output, with options.
#[must_use = "nothing is served before `serve` is awaited"]
pub struct Stdio {
    server: Server,
    options: NdjsonOptions,
    shutdown: ShutdownRequest,
    received: Vec<u8>,
}

impl Stdio {
    /// Creates a server with default options.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: NdjsonOptions::default(),
            shutdown: ShutdownRequest::never(),
            received: Vec::new(),
        }
    }

    /// Handles these bytes before standard input, of which they were read.
    pub fn received(mut self, input: Vec<u8>) -> Self {
        self.received = input;
        self
    }

    /// Serves; see [`serve`].
    ///
    /// # Errors
    ///
    /// If reading or writing fails, except by a disconnect.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub async fn serve(self) -> io::Result<()> {
        let mut signals = TerminationSignals::watch()?;
        let mut requested = self.shutdown;
        let shutdown = ShutdownRequest::new(Box::pin(async move {
            select! {
                () = signals.received() => {}
                () = requested.wait() => {}
            }
        }));
        let (input, output) = streams::take_standard_streams()?;
        let output = Arc::new(output);
        let connection = NdjsonConnection::new(self.server, self.options);
        let writing = write_when_needed(connection.write_queue().clone(), output.clone());
        let reading = {
            let (connection, received) = (connection.clone(), self.received);
            spawn_thread("mcp stdin", move |runtime| {
                read(runtime, &connection, &received, input, &output)
            })?
        };
        ndjson::run(connection, reading, writing, shutdown).await
    }
}

connection_options!(Stdio);

impl std::fmt::Debug for Stdio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stdio")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Runs blocking work in a separate thread that does not delay the end of the process.
fn spawn_thread(
    name: &str,
    work: impl FnOnce(&Handle) -> io::Result<()> + Send + 'static,
) -> io::Result<impl Future<Output = io::Result<()>>> {
    let runtime = Handle::current();
    let (done, outcome) = oneshot::channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let outcome = work(&runtime);
            // The receiver may be dropped already.
            let _ = done.send(outcome);
        })?;
    Ok(async {
        outcome
            .await
            .unwrap_or_else(|dropped| Err(io::Error::other(dropped)))
    })
}

fn read(
    runtime: &Handle,
    connection: &Arc<NdjsonConnection>,
    received: &[u8],
    mut input: StdinReader,
    output: &StdoutWriter,
) -> io::Result<()> {
    // Handlers are polled here for the first time, and may need timers or tasks.
    let _runtime = runtime.enter();
    let queue = connection.write_queue();
    let mut lines = LineDecoder::new(connection.line_limit());
    if !received.is_empty() {
        receive(runtime, connection, &mut lines, received, output);
    }
    loop {
        let chunk = input.read()?;
        if queue.is_ended() {
            return Ok(());
        }
        if chunk.is_empty() {
            break;
        }
        receive(runtime, connection, &mut lines, chunk, output);
    }
    if let Some(line) = lines.finish() {
        connection.receive(line);
        flush(queue, output);
    }
    Ok(())
}

/// Receives the lines that a chunk of the input completes.
fn receive(
    runtime: &Handle,
    connection: &Arc<NdjsonConnection>,
    lines: &mut LineDecoder,
    chunk: &[u8],
    output: &StdoutWriter,
) {
    let queue = connection.write_queue();
    let mut rest = chunk;
    let mut unflushed = rest.len();
    while let Some(line) = lines.next(&mut rest) {
        connection.receive(line);
        if queue.is_full() {
            queue.wake();
            runtime.block_on(queue.wait_for_room());
        }
        if unflushed - rest.len() >= FLUSH_INTERVAL_BYTES {
            unflushed = rest.len();
            flush(queue, output);
        }
    }
    flush(queue, output);
}

/// Writes what is possible without blocking, so that reading continues even if the client does not read.
fn flush(queue: &WriteQueue, output: &StdoutWriter) {
    let Some(batch) = queue.try_take(BUFFER_BYTES) else {
        return queue.wake();
    };
    match output.write_now(&batch) {
        Ok(written) if written < batch.len() => queue.unread(batch, written),
        outcome => {
            queue.finish_chunk(batch, outcome.map(drop));
        }
    }
}

/// Starts the writing thread when the reading thread cannot write everything. Many servers never need it.
async fn write_when_needed(queue: Arc<WriteQueue>, output: Arc<StdoutWriter>) -> io::Result<()> {
    let Some(first) = queue.next_chunk(Vec::new()).await? else {
        return Ok(());
    };
    spawn_thread("mcp stdout", move |runtime| {
        write(runtime, &queue, first, &output)
    })?
    .await
}

fn write(
    runtime: &Handle,
    queue: &WriteQueue,
    first: Vec<u8>,
    output: &StdoutWriter,
) -> io::Result<()> {
    let mut next = Some(first);
    while let Some(batch) = next {
        output.write_all(&batch)?;
        let spare = queue.finish_chunk(batch, Ok(()));
        next = runtime.block_on(queue.next_chunk(spare))?;
    }
    Ok(())
}
