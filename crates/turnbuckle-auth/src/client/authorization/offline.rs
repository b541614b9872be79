//! Tokens that outlive the user's presence.

use crate::{AuthorizationServer, Scopes};

const OFFLINE: &str = "offline_access";

/// Adds `offline_access`, which a refresh token may need, if the server knows it.
///
/// Where nothing is asked for, nothing is added: that would mean this scope and no other.
pub fn with_offline_access(scopes: Option<Scopes>, server: &AuthorizationServer) -> Option<Scopes> {
    let is_known = server.scopes_supported.iter().any(|scope| scope == OFFLINE);
    let offline = Scopes::from_iter([OFFLINE.to_owned()]);
    match is_known {
        true => scopes.map(|scopes| scopes.union(&offline)),
        false => scopes,
    }
}

/// What an authorization server does with the user. OpenID Connect gives `offline_access` only to users who were asked.
pub(super) fn prompt(scopes: Option<&Scopes>) -> Option<&'static str> {
    let is_offline = scopes.is_some_and(|scopes| scopes.contains(OFFLINE));
    is_offline.then_some("consent")
}
