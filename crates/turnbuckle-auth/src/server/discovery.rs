//! What an issuer says about itself.

use crate::{
    AuthorizationServer,
    fetch::{Fetch, Request},
    well_known,
};

/// Fetches the metadata of an issuer, byte for byte and read; from wherever it is first found to be the issuer's own.
pub(super) async fn discover(
    fetch: &dyn Fetch,
    issuer: &str,
) -> Result<(Vec<u8>, AuthorizationServer), String> {
    let mut reason = "it is no URL of an issuer".to_owned();
    for url in well_known::authorization_server(issuer) {
        match get(fetch, &url).await {
            Ok(body) => match AuthorizationServer::parse(&body, issuer) {
                Ok(metadata) => return Ok((body, metadata)),
                Err(error) => reason = format!("{url}: {error}"),
            },
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

/// Fetches a document.
pub(super) async fn get(fetch: &dyn Fetch, url: &str) -> Result<Vec<u8>, String> {
    match fetch.fetch(Request::get(url)).await {
        Ok(response) if response.is_success() => Ok(response.body),
        Ok(response) => Err(format!("{url}: status {}", response.status)),
        Err(error) => Err(format!("{url}: {error}")),
    }
}
