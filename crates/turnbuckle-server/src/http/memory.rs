//! Connections within this process.

use std::{io, net::SocketAddr};

use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
};

use super::Listener;

/// How many bytes a connection holds before its writer has to wait.
const BUFFER: usize = 64 * 1024;

/// Makes a listener for connections within this process, and what to connect with. For tests, and for programs
/// that hold both sides.
pub fn memory() -> (Connector, MemoryListener) {
    let (sender, receiver) = mpsc::channel(16);
    (Connector { sender }, MemoryListener { receiver })
}

/// Opens connections to a [`MemoryListener`].
#[derive(Clone, Debug)]
pub struct Connector {
    sender: mpsc::Sender<DuplexStream>,
}

impl Connector {
    /// Opens a connection; fails if nobody listens any more.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (ours, theirs) = duplex(BUFFER);
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
            // Whoever could connect is gone: like a port that nobody knows.
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
