//! Newline-delimited JSON over any pair of byte streams, for custom transports.
//!
//! Any reader and writer work: a socket, a pipe, an in-memory duplex; see [`serve`]. [`stdio`](crate::stdio) is the
//! same over standard input and output.
//!
//! One connection is one peer. It may use both eras: a request with a version in `_meta` is stateless, any other
//! belongs to the session of the last `initialize` on this connection. A second `initialize` replaces the session;
//! running calls continue.

mod batch;
mod connection;
mod run_request;
mod shutdown;
mod write_queue;

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use http::Extensions;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use turnbuckle_protocol::{Principal, codec};

pub(crate) use self::{
    connection::NdjsonConnection,
    shutdown::{ShutdownRequest, run},
    write_queue::WriteQueue,
};
use crate::Server;

/// Size of the read buffer.
const READ_BUFFER_BYTES: usize = 16 * 1024;

/// Time limit for a write that blocks after the peer has ended its input.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves one peer over newline-delimited JSON.
///
/// Returns when the peer has ended its input and all requests have responses. Calls still running after 5 seconds are
/// dropped, and so is output that the peer does not read for 5 to 10 seconds. A disconnect is not an error.
/// [`NdjsonServer`] has options.
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use turnbuckle_server::{Server, ndjson::serve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let (mut client, server) = tokio::io::duplex(1024);
/// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
/// client.shutdown().await?;
///
/// let (reader, writer) = tokio::io::split(server);
/// serve(reader, writer, Server::new("example", "1.0.0")).await?;
///
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).await?;
/// assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// If reading or writing fails, except by a disconnect.
pub async fn serve(
    reader: impl AsyncRead,
    writer: impl AsyncWrite,
    server: Server,
) -> io::Result<()> {
    NdjsonServer::new(server).serve(reader, writer).await
}

/// Serves peers over newline-delimited JSON, with options.
#[must_use = "nothing is served before `serve` is awaited"]
pub struct NdjsonServer {
    server: Server,
    options: NdjsonOptions,
    shutdown: ShutdownRequest,
}

impl NdjsonServer {
    /// Creates a server with default options.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: NdjsonOptions::default(),
            shutdown: ShutdownRequest::never(),
        }
    }

    /// Serves one peer; see [`serve`].
    ///
    /// Dropping the future closes the connection immediately and drops its calls.
    ///
    /// # Errors
    ///
    /// If reading or writing fails, except by a disconnect.
    pub async fn serve(self, reader: impl AsyncRead, writer: impl AsyncWrite) -> io::Result<()> {
        let connection = NdjsonConnection::new(self.server, self.options);
        let queue = connection.write_queue().clone();
        let reading = read(&connection, reader);
        run(
            connection.clone(),
            reading,
            write(&queue, writer),
            self.shutdown,
        )
        .await
    }
}

/// Defines the options that [`NdjsonServer`] and [`Stdio`](crate::stdio::Stdio) share.
macro_rules! connection_options {
    ($server:ident) => {
        impl $server {
            /// Sets the maximum line length in bytes; 4 MiB by default. Longer lines are rejected without buffering.
            pub fn line_limit(mut self, bytes: usize) -> Self {
                self.options.line_limit = bytes;
                self
            }

            /// Sets the maximum number of concurrent calls; 10,000 by default. Further calls get a "busy" error.
            pub fn max_in_flight(mut self, calls: u32) -> Self {
                self.options.max_in_flight = calls;
                self
            }

            /// Sets the authenticated client. Handlers see it, and sealed values are bound to it.
            pub fn principal(mut self, principal: turnbuckle_protocol::Principal) -> Self {
                self.options.principal = Some(principal);
                self
            }

            /// Attaches a value to each request, for [`Context::get`](crate::Context::get).
            pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
                self.options.extensions.insert(value);
                self
            }

            /// Ends when `signal` resolves: reading stops, and running calls have one second to finish.
            pub fn shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
                self.shutdown = $crate::ndjson::ShutdownRequest::new(Box::pin(signal));
                self
            }
        }
    };
}
pub(crate) use connection_options;

connection_options!(NdjsonServer);

impl std::fmt::Debug for NdjsonServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NdjsonServer")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Options of byte streams and stdio.
pub(crate) struct NdjsonOptions {
    pub(crate) line_limit: usize,
    pub(crate) max_in_flight: u32,
    pub(crate) principal: Option<Principal>,
    pub(crate) extensions: Extensions,
    /// Maximum number of concurrent calls, where `max_in_flight` is shared with other connections.
    pub(crate) max_own_calls: usize,
    /// Maximum bytes of `initialize` parameters.
    pub(crate) max_initialize_bytes: usize,
}

impl Default for NdjsonOptions {
    fn default() -> Self {
        Self {
            line_limit: 4 * 1024 * 1024,
            max_in_flight: 10_000,
            max_own_calls: usize::MAX,
            principal: None,
            extensions: Extensions::new(),
            // A single peer is limited by the line length.
            max_initialize_bytes: usize::MAX,
        }
    }
}

async fn read(connection: &Arc<NdjsonConnection>, reader: impl AsyncRead) -> io::Result<()> {
    let mut reader = pin!(reader);
    let mut lines = codec::ndjson::LineDecoder::new(connection.line_limit());
    let mut chunk = vec![0; READ_BUFFER_BYTES];
    loop {
        let length = reader.read(&mut chunk).await?;
        if length == 0 {
            break;
        }
        let mut rest = &chunk[..length];
        while let Some(line) = lines.next(&mut rest) {
            connection.receive(line);
            if connection.write_queue().is_full() {
                connection.write_queue().wake();
                connection.write_queue().wait_for_room().await;
            }
        }
        connection.write_queue().wake();
    }
    if let Some(line) = lines.finish() {
        connection.receive(line);
        connection.write_queue().wake();
    }
    Ok(())
}

async fn write(queue: &WriteQueue, writer: impl AsyncWrite) -> io::Result<()> {
    let mut writer = pin!(writer);
    let mut spare = Vec::new();
    while let Some(batch) = queue.next_chunk(spare).await? {
        let mut rest = &batch[..];
        while !rest.is_empty() {
            let written = with_write_timeout(queue, writer.write(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = &rest[written..];
        }
        with_write_timeout(queue, writer.flush()).await?;
        spare = queue.finish_chunk(batch, Ok(()));
    }
    with_write_timeout(queue, writer.shutdown()).await
}

/// Waits for the peer to read. The wait is limited once the peer has ended its input.
async fn with_write_timeout<T>(
    queue: &WriteQueue,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let mut step = pin!(step);
    loop {
        let has_ended = queue.is_ended();
        match timeout(FINAL_WRITE_TIMEOUT, step.as_mut()).await {
            Ok(outcome) => return outcome,
            // Treated as a disconnect, which is the likely cause.
            Err(_) if has_ended => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => {}
        }
    }
}
