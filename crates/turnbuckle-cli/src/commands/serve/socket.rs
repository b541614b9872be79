//! On a Unix socket: one message per line, as on stdin and stdout.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use turnbuckle_server::Server;
use turnbuckle_server::lines::Lines;

use super::settings::Settings;
use super::signals::Signals;
use super::welcome::Welcome;
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Connections at one time; further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 1024;

/// Serves until a signal comes; a second one ends calls that still run.
pub(super) async fn serve(
    server: Server,
    path: &Path,
    mut signals: Signals,
    settings: &Settings,
    context: &Context,
) -> Result {
    let listener = bind(path).await?;
    let own = std::fs::symlink_metadata(path)?.ino();
    Welcome::socket(path, settings).say(context);
    let (end, ending) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = signals.came() => break,
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(talk(stream, server.clone(), ending.clone()));
                }
                // Most likely no descriptor is free: another connection has to end first.
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    remove(path, own);
    let _ = end.send(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = all_ended => Ok(()),
        () = signals.came() => Err(Failure::interrupted()),
    }
}

async fn talk(stream: UnixStream, server: Server, mut ending: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let lines = Lines::new(server).shutdown(async move {
        let _ = ending.wait_for(|ending| *ending).await;
    });
    if let Err(error) = lines.serve(reader, writer).await {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Listens where only the user may connect. A socket that nobody answers on was left behind, and is removed.
async fn bind(path: &Path) -> Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(path, &error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(Failure::not_asked(format!(
                "{} is there already, and no socket",
                path.display()
            )));
        }
        Ok(_) => match UnixStream::connect(path).await {
            Ok(_) => {
                let failure =
                    Failure::not_asked(format!("a server answers on {} already", path.display()));
                return Err(failure.hint(format!(
                    "`turnbuckle info unix:{}` shows which one",
                    path.display()
                )));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(|error| cannot(path, &error))?;
            }
            Err(error) => return Err(cannot(path, &error)),
        },
    }
    // From its first moment on nobody else may connect.
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| cannot(path, &error))
}

/// Removes the socket, unless somebody else has put another one there.
fn remove(path: &Path, own: u64) {
    let is_own = std::fs::symlink_metadata(path).is_ok_and(|there| there.ino() == own);
    if is_own {
        let _ = std::fs::remove_file(path);
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::not_asked(format!("cannot listen on unix:{}: {error}", path.display()))
}
