//! Unix sockets.

use std::{io, net::SocketAddr};

use tokio::net::{UnixListener, UnixStream};

use super::Listener;

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
