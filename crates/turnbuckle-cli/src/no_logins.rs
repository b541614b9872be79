//! Logins, in a build that knows none: nobody is known to any server.

use turnbuckle_client::http::Http;

use crate::account::Account;
use crate::commands::Wish;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::place;
use crate::servers::Remote;
use crate::target::Target;

/// Prepares to speak with a server, as nobody.
pub(crate) async fn authorized(
    _target: &Target,
    remote: &Remote,
    context: &Context,
) -> Result<Http> {
    Ok(place::http(remote, context))
}

/// Returns nothing: nobody is known.
pub(crate) async fn headers(_remote: &Remote, _context: &Context) -> Result<Vec<(String, String)>> {
    Ok(Vec::new())
}

/// Says how to become known to a server that asks.
pub(crate) fn advice(_target: &Target, names_us: bool) -> String {
    match names_us {
        true => "what was sent does not do: it may be over, or be for another server",
        false => "send a token with --token-file FILE; this build cannot log in",
    }
    .to_owned()
}

/// Says that it cannot.
pub(crate) async fn log_in(
    _target: &Target,
    _remote: &Remote,
    _wish: &Wish,
    _context: &Context,
) -> Result<Option<Account>> {
    Err(cannot())
}

/// Says that it cannot.
pub(crate) async fn log_out(_url: &str, _context: &Context) -> Result<bool> {
    Err(cannot())
}

/// Says that it cannot.
pub(crate) async fn all(_context: &Context) -> Result<Vec<Account>> {
    Err(cannot())
}

fn cannot() -> Failure {
    Failure::not_asked("this build cannot log in")
        .hint("build it with the feature `tls`, or send a token with --token-file FILE")
}
