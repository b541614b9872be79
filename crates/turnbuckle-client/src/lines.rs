//! Lines of JSON over a pair of byte streams: what stdio, unix sockets and memory have in common.

mod connection;
mod reader;
mod writer;

use std::fmt;

use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use connection::Connection;

use crate::stdio::{Process, Started};
use crate::{Client, ConnectError};

/// A pair of byte streams to reach a server by.
pub struct Lines {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The child of ours that the streams belong to.
    process: Option<Process>,
}

impl Lines {
    /// Reads what the server writes, and writes what it reads.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            process: None,
        }
    }

    pub(crate) fn of(child: Started) -> Self {
        Self {
            process: Some(child.process),
            ..Self::new(child.output, child.input)
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

/// Connects to the server at the other end of a pair of byte streams.
pub async fn connect_lines(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<Client, ConnectError> {
    Client::plain().connect(Lines::new(reader, writer)).await
}
