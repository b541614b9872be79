//! One message per line, over any pair of byte streams: your own transport.
//!
//! A socket, a pipe, an in-memory duplex: whatever can be read and written becomes a transport with
//! [`serve_lines`]. [`stdio`](crate::stdio) is the same over standard input and output.
//!
//! One connection is one peer. It may speak both eras at once: a request that says its version in `_meta` stands on
//! its own, everything else belongs to the session that the last `initialize` on this connection opened. A second
//! `initialize` opens a fresh session in place of the first; calls that are running go on.

mod batch;
mod call;
mod changes;
mod connection;
mod ending;
mod line;
mod sink;

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use http::Extensions;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use turnbuckle_protocol::{Principal, codec};

pub(crate) use self::{
    connection::Connection,
    ending::{Shutdown, run},
    sink::Sink,
};
use crate::Server;

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// How long a peer that has ended its side may read nothing of what is left to write.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Serves one peer that sends and gets one message per line.
///
/// Returns when the peer has ended its input and everything it asked for is answered; calls that are still running
/// 5 seconds later are dropped, and so is what the peer then does not read for 5 to 10 seconds. A peer that leaves is
/// no error. [`Lines`] has the options.
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use turnbuckle_server::{Server, lines::serve_lines};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let (mut client, server) = tokio::io::duplex(1024);
/// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
/// client.shutdown().await?;
///
/// let (reader, writer) = tokio::io::split(server);
/// serve_lines(reader, writer, Server::new("example", "1.0.0")).await?;
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
/// If reading or writing fails for another reason than that the peer left.
pub async fn serve_lines(
    reader: impl AsyncRead,
    writer: impl AsyncWrite,
    server: Server,
) -> io::Result<()> {
    Lines::new(server).serve(reader, writer).await
}

/// Serves peers that send and get one message per line, with options.
#[must_use = "nothing is served before `serve` is awaited"]
pub struct Lines {
    server: Server,
    options: Options,
    shutdown: Shutdown,
}

impl Lines {
    /// Serves with the defaults.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            options: Options::default(),
            shutdown: Shutdown::never(),
        }
    }

    /// Refuses lines of more than this many bytes; 4 MiB by default. A refused line takes no memory.
    pub fn line_limit(mut self, bytes: usize) -> Self {
        self.options.line_limit = bytes;
        self
    }

    /// Limits how many calls may be running at one time; 10,000 by default. Further ones are told that it is busy.
    pub fn max_in_flight(mut self, calls: u32) -> Self {
        self.options.max_in_flight = calls;
        self
    }

    /// Says who the peer is, if you know: handlers see it, and what is sealed for it opens for nobody else.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.options.principal = Some(principal);
        self
    }

    /// Gives handlers something along with each request; they find it with [`Context::get`](crate::Context::get).
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options.extensions.insert(value);
        self
    }

    /// Ends the connection when `wish` resolves: nothing more is read, running calls get one second.
    pub fn shutdown(mut self, wish: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Shutdown::new(Box::pin(wish));
        self
    }

    /// Serves one peer; see [`serve_lines`].
    ///
    /// Dropping the future ends the connection at once, and drops what runs for it.
    ///
    /// # Errors
    ///
    /// If reading or writing fails for another reason than that the peer left.
    pub async fn serve(self, reader: impl AsyncRead, writer: impl AsyncWrite) -> io::Result<()> {
        let connection = Connection::new(self.server, self.options);
        let sink = connection.sink().clone();
        let reading = read(&connection, reader);
        run(
            connection.clone(),
            reading,
            write(&sink, writer),
            self.shutdown,
        )
        .await
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// What both byte streams and stdio let their users choose.
pub(crate) struct Options {
    pub(crate) line_limit: usize,
    pub(crate) max_in_flight: u32,
    pub(crate) principal: Option<Principal>,
    pub(crate) extensions: Extensions,
    /// Bytes that a client may say about itself.
    pub(crate) handshake_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            line_limit: 4 * 1024 * 1024,
            max_in_flight: 10_000,
            principal: None,
            extensions: Extensions::new(),
            // One peer cannot say more than a line holds.
            handshake_limit: usize::MAX,
        }
    }
}

async fn read(connection: &Arc<Connection>, reader: impl AsyncRead) -> io::Result<()> {
    let mut reader = pin!(reader);
    let mut lines = codec::lines::Lines::new(connection.line_limit());
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = reader.read(&mut chunk).await?;
        if length == 0 {
            break;
        }
        let mut rest = &chunk[..length];
        while let Some(line) = lines.next(&mut rest) {
            connection.receive(line);
            if connection.sink().is_full() {
                connection.sink().wake();
                connection.sink().room().await;
            }
        }
        connection.sink().wake();
    }
    if let Some(line) = lines.finish() {
        connection.receive(line);
        connection.sink().wake();
    }
    Ok(())
}

async fn write(sink: &Sink, writer: impl AsyncWrite) -> io::Result<()> {
    let mut writer = pin!(writer);
    let mut spare = Vec::new();
    while let Some(batch) = sink.take(spare).await? {
        let mut rest = &batch[..];
        while !rest.is_empty() {
            let written = unless_given_up(sink, writer.write(rest)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = &rest[written..];
        }
        unless_given_up(sink, writer.flush()).await?;
        spare = sink.written(batch, Ok(()));
    }
    unless_given_up(sink, writer.shutdown()).await
}

/// Waits for a peer to read, and for one that has ended its side not for ever.
async fn unless_given_up<T>(
    sink: &Sink,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let mut step = pin!(step);
    loop {
        let has_ended = sink.is_ended();
        match timeout(LAST_WRITE, step.as_mut()).await {
            Ok(outcome) => return outcome,
            // As if the peer had left, which it most likely has.
            Err(_) if has_ended => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => {}
        }
    }
}
