//! The guard before a server on HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use turnbuckle_auth::Scopes;
use turnbuckle_auth::server::{Issuer, ResourceServer};
use turnbuckle_client::http::Fetcher;
use turnbuckle_server::http::Http;

use super::authorization::Authorization;
use crate::failure::{Failure, Result};

/// Lets in only those who may ask.
pub(super) fn protect(
    http: Http,
    authorization: &Authorization,
    bound: SocketAddr,
) -> Result<Http> {
    let here = || format!("http://{bound}/mcp");
    let resource = authorization.audience.clone().unwrap_or_else(here);
    let guard = ResourceServer::new(resource, Arc::new(Fetcher::trusted()));
    let guard = guard.map_err(|error| Failure::not_asked(error.to_string()))?;
    let mut guard = guard
        .name("Turnbuckle")
        .require(scopes(&authorization.scopes)?);
    if let Some(issuer) = &authorization.issuer {
        guard = guard
            .issuer(Issuer::jwt(issuer))
            .republish_issuer_metadata();
    }
    for known in &authorization.tokens {
        guard = guard.token(known.token.clone(), known.principal.clone());
    }
    Ok(http.guard(guard))
}

fn scopes(words: &[String]) -> Result<Scopes> {
    let words = words.join(" ");
    words
        .parse()
        .map_err(|_| Failure::not_asked(format!("`{words}` are no scopes")))
}
