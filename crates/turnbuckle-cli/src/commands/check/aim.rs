//! From a target of the command line to one of the checker.

use turnbuckle_check as check;
use turnbuckle_client as client;

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::place::{self, Place};
use crate::target::Target;
use crate::trust;

/// Prepares to check a server; says, too, whether somebody has decided what the server is told of us.
pub(super) async fn at(target: &Target, context: &Context) -> Result<(check::Target, bool)> {
    let label = match target {
        Target::Command(words) => {
            let words: Vec<_> = words.iter().map(|word| trust::quoted(word)).collect();
            words.join(" ")
        }
        other => other.label(),
    };
    let place = place::find(target, context)?;
    let names_us = place.names_us();
    let aimed = match place {
        Place::Web(remote) => {
            let mut headers: Vec<_> = remote
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
                .collect();
            headers.extend(logins::headers(&remote, context).await?);
            let aimed = check::Target::http(&remote.url, place::http(&remote, context), headers)
                .by_network();
            match remote.sse {
                true => aimed.http_sse(),
                false => aimed,
            }
        }
        Place::Here(client::Target::Child(child)) => check::Target::child(label, child),
        Place::Here(client::Target::Unix(unix)) => {
            check::Target::streams(label, move || connect(unix.path().to_owned()))
        }
        Place::Here(_) => return Err(Failure::not_asked("this server cannot be checked")),
    };
    Ok((aimed, names_us))
}

#[cfg(unix)]
async fn connect(
    path: std::path::PathBuf,
) -> std::io::Result<(
    tokio::net::unix::OwnedReadHalf,
    tokio::net::unix::OwnedWriteHalf,
)> {
    Ok(tokio::net::UnixStream::connect(path).await?.into_split())
}

#[cfg(not(unix))]
async fn connect(_: std::path::PathBuf) -> std::io::Result<(tokio::io::Empty, tokio::io::Sink)> {
    Err(std::io::ErrorKind::Unsupported.into())
}
