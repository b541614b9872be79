//! What to ask for.

use crate::{AuthorizationServer, Challenge, Scopes};

use super::super::discovery::Discovered;

/// Returns the scopes to ask for: those of the refusal, else all that the server's metadata names, else none at all.
///
/// `earlier` is what was asked for before; it is asked for again along with what is missing now.
pub fn wanted_scopes(
    challenges: &[Challenge],
    discovered: &Discovered,
    earlier: Option<&Scopes>,
) -> Option<Scopes> {
    let for_tokens = |challenge: &&Challenge| challenge.is("bearer") || challenge.is("dpop");
    let mut challenges = challenges.iter().filter(for_tokens);
    let challenged = challenges.find_map(|challenge| challenge.parameter("scope"));
    let challenged = challenged.and_then(|scope| scope.parse::<Scopes>().ok());
    let now = challenged.filter(|scopes| !scopes.is_empty());
    match (now.or_else(|| discovered.scopes.clone()), earlier) {
        (Some(now), Some(earlier)) => Some(now.union(earlier)),
        (None, earlier) => earlier.cloned(),
        (now, None) => now,
    }
}

/// Adds `offline_access`, which a refresh token may need, if the server knows it.
///
/// Where nothing is asked for, nothing is added: that would mean this scope and no other.
pub fn with_offline_access(scopes: Option<Scopes>, server: &AuthorizationServer) -> Option<Scopes> {
    const OFFLINE: &str = "offline_access";
    let is_known = server.scopes_supported.iter().any(|scope| scope == OFFLINE);
    let offline = Scopes::from_iter([OFFLINE.to_owned()]);
    match is_known {
        true => scopes.map(|scopes| scopes.union(&offline)),
        false => scopes,
    }
}
