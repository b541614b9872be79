//! What the command line and the file say together.

use std::path::PathBuf;
use std::time::Duration;

use super::Serve;
use super::authorization::Authorization;
use super::config::{Config, Embeddings, Limits};
use super::place::Place;
use super::quota::Quota;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::memory;

/// How the server runs.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) place: Place,
    pub(super) data: PathBuf,
    pub(super) half_life: Option<Duration>,
    /// The folders that projects may be in; anywhere if nobody says.
    pub(super) roots: Option<Vec<PathBuf>>,
    /// How much each caller may keep, if set.
    pub(super) quota: Option<Quota>,
    /// How long a search and indexing may take, if set.
    pub(super) deadline: Option<Duration>,
    pub(super) index_deadline: Option<Duration>,
    pub(super) hosts: Vec<String>,
    /// Whether clients of 2024-11-05 are served too.
    pub(super) http_sse: bool,
    /// Who may ask; everybody who can, if nobody says.
    pub(super) authorization: Option<Authorization>,
    pub(super) embeddings: Option<Embeddings>,
    pub(super) limits: Limits,
}

impl Settings {
    /// Reads the file, and lets what the command line says count more.
    pub(super) fn gather(serve: Serve, context: &Context) -> Result<Self> {
        let environment = &context.environment;
        let config = Config::find(context.options.config.as_deref(), environment)?;
        let here = |path: PathBuf| environment.cwd.join(path);
        let place = match serve.listen {
            Some(Place::Unix(path)) => Place::Unix(here(path)),
            Some(place) => place,
            None => config.listen.unwrap_or(Place::USUAL),
        };
        if matches!(place, Place::Unix(_)) && serve.authorization.are_given() {
            return Err(no_tokens_on_a_socket());
        }
        if matches!(place, Place::Unix(_)) && serve.http_sse {
            return Err(no_http_on_a_socket());
        }
        // Only the user connects to stdin or a socket, wherever the file would have us listen.
        let authorization = match place {
            Place::Tcp(_) if !serve.stdio => {
                Authorization::gather(serve.authorization, config.authorization, environment)?
            }
            _ => None,
        };
        let is_open = authorization.is_none() && !serve.dangerously_allow_unauthenticated;
        if !serve.stdio && !place.is_local() && is_open {
            return Err(beyond_this_machine(&place));
        }
        let roots: Vec<_> = serve.roots.into_iter().map(here).collect();
        let data = serve.data.map(here).or(config.data);
        let mut hosts: Vec<_> = serve.hosts.into_iter().chain(config.allow_hosts).collect();
        if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
            return Err(Failure::not_asked(format!(
                "`{wrong}` is no name of a machine"
            )));
        }
        // Where clients reach us is a name that we answer to.
        let named = authorization.as_ref().and_then(Authorization::host);
        hosts.extend(named.filter(|host| is_host(host)).map(str::to_owned));
        Ok(Self {
            place,
            data: memory::folder(data, environment)?,
            half_life: config.half_life,
            roots: match roots.is_empty() {
                true => config.roots,
                false => Some(roots),
            },
            quota: serve.quota.or(config.quota),
            deadline: serve.deadline.or(config.deadline),
            index_deadline: serve.index_deadline.or(config.index_deadline),
            hosts,
            http_sse: serve.http_sse || config.http_sse,
            authorization,
            embeddings: config.embeddings,
            limits: config.limits,
        })
    }
}

fn beyond_this_machine(place: &Place) -> Failure {
    Failure::not_asked(format!(
        "{place} can be reached from other machines, and nobody would have to sign in"
    ))
    .hint(
        "--auth-issuer or --token-file says who may ask; or listen on 127.0.0.1 and let ssh bring others there; \
         --dangerously-allow-unauthenticated listens all the same",
    )
}

fn no_tokens_on_a_socket() -> Failure {
    Failure::not_asked("there are no tokens on a Unix socket: only you can connect to it")
        .hint("--listen 127.0.0.1:8321 listens on HTTP")
}

fn no_http_on_a_socket() -> Failure {
    Failure::not_asked("--http-sse needs HTTP, and a Unix socket carries lines")
        .hint("--listen 127.0.0.1:8321 listens on HTTP")
}

/// A name or an address of the fourth version, perhaps with a port.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "1"));
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(letter);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    name.split('.').all(is_label) && is_port
}

#[cfg(test)]
mod tests {
    use turnbuckle_server::{Server, http::Http};

    use super::*;

    #[test]
    fn what_passes_for_a_host_is_one_to_the_server() {
        let http = || Http::new(Server::new("a", "1"));
        for host in [
            "box",
            "box.example",
            "box.example:80",
            "192.168.1.2",
            "192.168.1.2:8321",
        ] {
            assert!(is_host(host), "{host}");
            let _ = http().allow_host(host);
        }
        for wrong in [
            "", "a..b", "a.", "a:+1", "a:", "http://a", "a/b", "a:1:2", "a b",
        ] {
            assert!(!is_host(wrong), "{wrong}");
        }
    }
}
