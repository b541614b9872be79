//! Serves newline-delimited JSON on a Unix socket, as on stdin and stdout.

use std::{
    io::{self, ErrorKind},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::Mode;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
};
use turnbuckle_server::{Server, ndjson::NdjsonServer};

use crate::{
    error::{CliError, Result},
    signals::ShutdownSignals,
};

/// The maximum number of connections; others wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;

/// A bound Unix socket that only the user can connect to. It is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl UnixSocket {
    /// Binds a socket. A stale one is removed.
    pub(crate) async fn bind(path: &Path) -> Result<Self> {
        let listener = bind(path).await?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        let path = path.to_owned();
        Ok(Self {
            listener,
            path,
            inode,
        })
    }

    /// Serves until a signal arrives, then lets running calls finish; a second signal or the timeout aborts them.
    pub(crate) async fn serve(
        self,
        server: Server,
        signals: &mut ShutdownSignals,
        shutdown_timeout: Duration,
    ) -> Result {
        let (end, ending) = watch::channel(false);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = signals.recv() => break,
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, server.clone(), ending.clone()));
                    }
                    // Probably no file descriptor is free: wait until a connection ends.
                    Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self);
        let _ = end.send(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(shutdown_timeout, all_ended) => Ok(()),
            () = signals.recv() => Err(CliError::interrupted()),
        }
    }
}

impl Drop for UnixSocket {
    /// Removes the socket, unless another process has replaced it.
    fn drop(&mut self) {
        let there = std::fs::symlink_metadata(&self.path);
        if there.is_ok_and(|there| there.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

async fn serve_connection(stream: UnixStream, server: Server, mut ending: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let lines = NdjsonServer::new(server).shutdown(async move {
        let _ = ending.wait_for(|ending| *ending).await;
    });
    if let Err(error) = lines.serve(reader, writer).await {
        tracing::debug!(%error, "connection failed");
    }
}

/// Binds a socket that only the user can connect to. A stale socket is removed.
async fn bind(path: &Path) -> Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(listen_error(path, &error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(CliError::could_not_run(format!(
                "{} exists and is not a socket",
                path.display()
            )));
        }
        Ok(_) => match UnixStream::connect(path).await {
            Ok(_) => {
                let failure = CliError::could_not_run(format!(
                    "a server is already listening on {}",
                    path.display()
                ));
                return Err(failure.hint(format!(
                    "`turnbuckle info unix:{}` shows which one",
                    path.display()
                )));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(|error| listen_error(path, &error))?;
            }
            Err(error) => return Err(listen_error(path, &error)),
        },
    }
    // Set before the bind, so that no other user can ever connect.
    let previous = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let bound = UnixListener::bind(path);
    rustix::process::umask(previous);
    bound.map_err(|error| listen_error(path, &error))
}

fn listen_error(path: &Path, error: &io::Error) -> CliError {
    CliError::could_not_run(format!("cannot listen on unix:{}: {error}", path.display()))
}
