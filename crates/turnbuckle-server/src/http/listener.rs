//! Where connections come from.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

/// A source of connections: a TCP or Unix socket, or [memory](super::memory).
pub trait Listener: Send {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection, and says where it comes from if that has an address.
    ///
    /// The future may be dropped before it is ready, and must lose no connection then.
    fn accept(&mut self)
    -> impl Future<Output = io::Result<(Self::Io, Option<SocketAddr>)>> + Send;

    /// The address that clients connect to, if it is one of the internet.
    fn local_addr(&self) -> Option<SocketAddr>;

    /// Returns whether each connection takes a file descriptor, so that their limit holds; true unless overridden.
    fn uses_descriptors(&self) -> bool {
        true
    }
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Without it an event waits until the client has acknowledged the one before, 40 ms or more.
        // A connection that cannot is already gone, which reading from it will show.
        let _ = stream.set_nodelay(true);
        Ok((stream, Some(peer)))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        TcpListener::local_addr(self).ok()
    }
}
