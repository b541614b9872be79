//! Sources of connections: TCP and Unix sockets, and connections in memory.

use std::{io, net::SocketAddr};

#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A source of connections: a TCP or Unix socket, or [memory].
pub trait Listener: Send {
    /// The type of a connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection, and returns it with the address of the peer if it has one.
    ///
    /// The future must be cancel safe: dropping it must not lose a connection.
    fn accept(&mut self)
    -> impl Future<Output = io::Result<(Self::Io, Option<SocketAddr>)>> + Send;

    /// Returns the address that clients connect to, if it is an IP address.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// Returns whether each connection uses a file descriptor, so that the descriptor limit applies. The default is `true`.
    fn uses_descriptors(&self) -> bool {
        true
    }
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Without `TCP_NODELAY` an event waits for the acknowledgement of the one before, 40 ms or more. If setting it fails, the
        // connection is already closed, which the next read reports.
        let _ = stream.set_nodelay(true);
        Ok((stream, Some(peer)))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        TcpListener::local_addr(self).ok()
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        let (stream, _) = UnixListener::accept(self).await?;
        Ok((stream, None))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }
}

/// Number of bytes that a connection buffers before its writer waits.
const BUFFER_BYTES: usize = 64 * 1024;

/// Creates a listener for connections within this process, and the connector for it. For tests, and for programs that
/// contain both sides.
pub fn memory() -> (MemoryConnector, MemoryListener) {
    let (sender, receiver) = mpsc::channel(16);
    (MemoryConnector { sender }, MemoryListener { receiver })
}

/// Opens connections to a [`MemoryListener`].
#[derive(Clone, Debug)]
pub struct MemoryConnector {
    sender: mpsc::Sender<DuplexStream>,
}

impl MemoryConnector {
    /// Opens a connection. Fails if the listener was dropped.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = duplex(BUFFER_BYTES);
        match self.sender.send(theirs).await {
            Ok(()) => Ok(ours),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

/// Accepts connections within this process.
#[derive(Debug)]
pub struct MemoryListener {
    receiver: mpsc::Receiver<DuplexStream>,
}

impl Listener for MemoryListener {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<(DuplexStream, Option<SocketAddr>)> {
        match self.receiver.recv().await {
            Some(stream) => Ok((stream, None)),
            // All connectors are dropped, so no connection can arrive.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn uses_descriptors(&self) -> bool {
        false
    }
}
