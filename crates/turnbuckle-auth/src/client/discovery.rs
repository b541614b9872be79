//! Finding out who gives tokens for a server.
//!
//! A server that refuses says where its metadata is, or keeps it at a known place; the metadata names who gives tokens. Servers
//! of 2025-03-26 have none and give tokens themselves. As few places are asked as possible, and what is there but wrong ends the
//! search: otherwise whoever can break one document could choose another.

mod document;
mod resource;
mod server;

#[cfg(test)]
mod tests;

pub use server::server;

use crate::{AuthorizationServer, Challenge, Failure, Scopes, Step, fetch::Fetch, place::Place};

use super::safe_url;
use document::Asking;

/// Who gives tokens for a server, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovered {
    /// What tokens are asked for: byte for byte as the metadata says, or the URL of the server if there is no metadata.
    pub resource: String,
    /// What can be asked for, if the metadata says so.
    pub scopes: Option<Scopes>,
    /// Who gives tokens.
    pub server: AuthorizationServer,
    /// Whether tokens must be bound to a key.
    pub dpop_required: bool,
    /// How it was found.
    pub found: Found,
}

/// How an authorization server was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The metadata of the server names it.
    Metadata,
    /// The server has no metadata, but its origin has that of an authorization server (2025-03-26).
    OriginMetadata,
    /// There is no metadata at all; endpoints are where 2025-03-26 has them.
    DefaultEndpoints,
}

/// Finds out who gives tokens for a server that refused with these challenges.
///
/// `revision` is the protocol version that goes along in `MCP-Protocol-Version`.
pub async fn discover(
    fetch: &dyn Fetch,
    server_url: &str,
    challenges: &[Challenge],
    revision: &str,
) -> Result<Discovered, Failure> {
    safe_url::check(server_url, Step::ResourceMetadata, "URL of the server")?;
    let asking = Asking { fetch, revision };
    let wants_dpop = wants_dpop(challenges);
    let Some(metadata) = resource::metadata(&asking, server_url, challenges).await? else {
        let (server, found) = server::of_origin(&asking, server_url).await?;
        return Ok(Discovered {
            resource: canonical(server_url),
            scopes: None,
            server,
            dpop_required: wants_dpop,
            found,
        });
    };
    let server = server::first_of(&asking, &metadata.authorization_servers).await?;
    Ok(Discovered {
        scopes: known_scopes(&metadata.scopes_supported),
        server,
        dpop_required: wants_dpop || metadata.dpop_bound_access_tokens_required,
        resource: metadata.resource,
        found: Found::Metadata,
    })
}

/// Returns the scopes that a list names; what can be none is left out.
fn known_scopes(names: &[String]) -> Option<Scopes> {
    let parsed = names.iter().filter_map(|name| name.parse::<Scopes>().ok());
    let scopes = parsed.fold(Scopes::default(), |all, more| all.union(&more));
    Some(scopes).filter(|scopes| !scopes.is_empty())
}

/// Whether a server takes only tokens that are bound to a key.
fn wants_dpop(challenges: &[Challenge]) -> bool {
    let offers = |scheme: &str| challenges.iter().any(|challenge| challenge.is(scheme));
    offers("dpop") && !offers("bearer")
}

/// The URL of a server that nobody has told us how to write.
fn canonical(server_url: &str) -> String {
    let Some(place) = Place::parse(server_url) else {
        return server_url.to_owned();
    };
    let origin = place.origin.to_ascii_lowercase();
    format!("{origin}{}{}", place.path_below_root(), place.query)
}

/// The origin of a URL that was checked.
fn origin(url: &str) -> &str {
    Place::parse(url).map_or(url, |place| place.origin)
}
