//! A server behind a unix socket: one message per line, as on standard input and output.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = turnbuckle_client::unix::connect("/run/weather.sock").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Where there are no such sockets, connecting fails.

#[cfg(not(unix))]
#[path = "unix/absent.rs"]
mod socket;
#[cfg(unix)]
#[path = "unix/socket.rs"]
mod socket;

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{Client, ConnectError, lines::Lines};

/// Connects to the server behind a unix socket.
///
/// # Errors
///
/// If nobody listens there, or the two sides have no revision in common.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn connect(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    Client::plain().connect(Unix::new(path)).await
}

/// A server behind a unix socket.
#[derive(Clone, Debug)]
pub struct Unix {
    path: PathBuf,
}

impl Unix {
    /// Is reached by the socket at this path.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
        }
    }

    /// Returns where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn open(&self) -> io::Result<Lines> {
        socket::open(&self.path).await
    }
}
