//! Servers on a unix socket, with newline-delimited JSON.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = turnbuckle_client::unix::connect("/run/weather.sock").await?;
//! # Ok(())
//! # }
//! ```
//!
//! On systems without unix sockets, connecting fails.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{client::Client, error::ConnectError, transport::ndjson::NdjsonClient};

/// Connects to the server on a unix socket.
///
/// # Errors
///
/// If connecting to the socket fails, or if the server does not share a revision.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn connect(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    Client::default_builder()
        .connect(UnixTarget::new(path))
        .await
}

/// A server on a unix socket.
#[derive(Clone, Debug)]
pub struct UnixTarget {
    path: PathBuf,
}

impl UnixTarget {
    /// Creates a target for the socket at this path.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
        }
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(unix)]
    pub(crate) async fn open(&self) -> io::Result<NdjsonClient> {
        let stream = tokio::net::UnixStream::connect(&self.path).await?;
        let (reader, writer) = stream.into_split();
        Ok(NdjsonClient::new(reader, writer))
    }

    #[cfg(not(unix))]
    pub(crate) async fn open(&self) -> io::Result<NdjsonClient> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
