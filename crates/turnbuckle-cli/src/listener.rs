//! Listens for clients, for `serve` and `bridge`: HTTP on a port, or newline-delimited JSON on a Unix socket.
//!
//! [`access`] decides who may connect, [`startup_message`] prints the address, and [`log`] writes what happens.

mod access;
mod address;
pub(crate) mod auth;
pub(crate) mod http;
pub(crate) mod log;
mod machine;
pub(crate) mod startup_message;
#[cfg(unix)]
pub(crate) mod unix_socket;

pub(crate) use access::{AccessOptions, ClientAccess};
pub(crate) use address::ListenAddress;

/// Stub for systems without Unix sockets.
#[cfg(not(unix))]
pub(crate) mod unix_socket {
    use std::{path::Path, time::Duration};

    use turnbuckle_server::Server;

    use crate::{
        error::{CliError, Result},
        signals::ShutdownSignals,
    };

    /// Cannot be created.
    pub(crate) enum UnixSocket {}

    impl UnixSocket {
        /// Returns an error.
        pub(crate) async fn bind(_path: &Path) -> Result<Self> {
            Err(
                CliError::could_not_run("this system does not support Unix sockets")
                    .hint("use --listen 127.0.0.1:PORT"),
            )
        }

        /// Is never called.
        pub(crate) async fn serve(
            self,
            _server: Server,
            _signals: &mut ShutdownSignals,
            _shutdown_timeout: Duration,
        ) -> Result {
            match self {}
        }
    }
}
