//! Discovery of the authorization server of an MCP server.
//!
//! The challenge of a 401 refers to the metadata of the MCP server, or it is at a well-known URL; the metadata names
//! the authorization servers. Servers of 2025-03-26 lack metadata and are authorization servers themselves. As few
//! URLs as possible are requested. A document that exists but is invalid ends the search: otherwise an attacker who can
//! break one document could choose another.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use turnbuckle_protocol::json;
use turnbuckle_text::url::HttpUrl;

use super::{
    oauth_error::{self, OAuthErrorResponse, RequestDescription},
    safe_url,
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Challenge, InvalidMetadata,
    ProtectedResource, Scopes,
    fetch::{Fetch, FetchRequest, FetchResponse},
    is_same_resource, well_known,
};

/// The authorization server of an MCP server, and what to request there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryResult {
    /// The resource identifier for tokens: exactly as in the metadata, or the URL of the server if there is no
    /// metadata.
    pub resource: String,
    /// The scopes listed in the metadata.
    pub scopes: Option<Scopes>,
    /// The authorization server.
    pub server: AuthorizationServer,
    /// True if tokens must be bound to a key.
    pub dpop_required: bool,
    /// The discovery method.
    pub method: DiscoveryMethod,
}

/// The way an authorization server was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryMethod {
    /// It is named in the metadata of the MCP server.
    ResourceMetadata,
    /// The MCP server lacks metadata, but its origin has authorization server metadata (2025-03-26).
    OriginMetadata,
    /// Without metadata; the endpoints are the defaults of 2025-03-26.
    DefaultEndpoints,
}

/// Finds the authorization server of an MCP server that responded with these challenges.
///
/// `revision` is sent in `MCP-Protocol-Version`.
pub async fn discover(
    fetch: &dyn Fetch,
    server_url: &str,
    challenges: &[Challenge],
    revision: &str,
) -> Result<DiscoveryResult, AuthorizationError> {
    safe_url::check(
        server_url,
        AuthorizationStep::ResourceMetadata,
        "URL of the server",
    )?;
    let fetcher = MetadataFetcher { fetch, revision };
    let requires_dpop = requires_dpop(challenges);
    let Some(metadata) = resource_metadata(&fetcher, server_url, challenges).await? else {
        let (server, method) = for_origin(&fetcher, server_url).await?;
        return Ok(DiscoveryResult {
            resource: canonical(server_url),
            scopes: None,
            server,
            dpop_required: requires_dpop,
            method,
        });
    };
    let server = first_with_metadata(&fetcher, &metadata.authorization_servers).await?;
    Ok(DiscoveryResult {
        scopes: parse_scopes(&metadata.scopes_supported),
        server,
        dpop_required: requires_dpop || metadata.dpop_bound_access_tokens_required,
        resource: metadata.resource,
        method: DiscoveryMethod::ResourceMetadata,
    })
}

/// Returns the scopes of a list; invalid names are skipped.
fn parse_scopes(names: &[String]) -> Option<Scopes> {
    let parsed = names.iter().filter_map(|name| name.parse::<Scopes>().ok());
    let scopes = parsed.fold(Scopes::default(), |all, more| all.union(&more));
    Some(scopes).filter(|scopes| !scopes.is_empty())
}

/// Returns whether the server accepts only tokens that are bound to a key.
fn requires_dpop(challenges: &[Challenge]) -> bool {
    let supports = |scheme: &str| {
        challenges
            .iter()
            .any(|challenge| challenge.is_scheme(scheme))
    };
    supports("dpop") && !supports("bearer")
}

/// Returns the resource identifier of a server without metadata.
fn canonical(server_url: &str) -> String {
    let Ok(url) = HttpUrl::parse(server_url) else {
        return server_url.to_owned();
    };
    let origin = url.origin.to_ascii_lowercase();
    format!("{origin}{}{}", url.path_without_root(), url.query)
}

/// Returns the origin of a URL that has been validated.
fn origin(url: &str) -> &str {
    HttpUrl::parse(url).map_or(url, |url| url.origin)
}

/// Fetches metadata documents.
struct MetadataFetcher<'a> {
    fetch: &'a dyn Fetch,
    revision: &'a str,
}

/// A fetched document.
struct MetadataDocument {
    url: String,
    body: Vec<u8>,
}

impl MetadataFetcher<'_> {
    /// Fetches a document that must exist.
    async fn require(
        &self,
        url: &str,
        step: AuthorizationStep,
    ) -> Result<MetadataDocument, AuthorizationError> {
        let response = self.get(url, step).await?;
        if response.is_success() {
            Ok(MetadataDocument::new(url, response))
        } else {
            Err(document_error(url, step, &response))
        }
    }

    /// Fetches a document that may exist; returns `None` if it does not.
    ///
    /// Only a 4xx response means that it does not exist. After a server error the search ends, because otherwise an
    /// attacker who can cause one could make the client use another document.
    async fn probe(
        &self,
        url: &str,
        step: AuthorizationStep,
    ) -> Result<Option<MetadataDocument>, AuthorizationError> {
        let response = self.get(url, step).await?;
        match response.status {
            200..300 if is_html(&response) => Ok(None),
            200..300 => Ok(Some(MetadataDocument::new(url, response))),
            400..500 => Ok(None),
            _ => Err(document_error(url, step, &response)),
        }
    }

    async fn get(
        &self,
        url: &str,
        step: AuthorizationStep,
    ) -> Result<FetchResponse, AuthorizationError> {
        let request = FetchRequest::get(url).header("mcp-protocol-version", self.revision);
        oauth_error::send_request(self.fetch, request, step).await
    }
}

impl MetadataDocument {
    fn new(url: &str, response: FetchResponse) -> MetadataDocument {
        MetadataDocument {
            url: url.to_owned(),
            body: response.body,
        }
    }

    /// Creates the error for an invalid document.
    fn rejected(&self, step: AuthorizationStep, reason: impl Into<String>) -> AuthorizationError {
        self.attach_request(AuthorizationError::new(step, reason))
            .with_hint("the document was not used; ask the operator of the server to correct it")
    }

    /// Adds the request of this document to an error.
    fn attach_request(&self, failure: AuthorizationError) -> AuthorizationError {
        failure.with_request(FetchRequest::get(&self.url))
    }
}

/// Returns whether the response is an HTML page, which some sites send instead of a 404.
fn is_html(response: &FetchResponse) -> bool {
    let kind = response.header("content-type").unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("text/html")
}

fn document_error(
    url: &str,
    step: AuthorizationStep,
    response: &FetchResponse,
) -> AuthorizationError {
    let (reason, hint) = match response.status {
        500.. => (
            "the server failed while its metadata was fetched",
            "try again later",
        ),
        _ => (
            "the metadata is not at the URL that the server announces",
            "ask the operator of the server to correct the announced `resource_metadata`",
        ),
    };
    OAuthErrorResponse::new(response, &[])
        .add_to(AuthorizationError::new(step, reason))
        .with_request(FetchRequest::get(url))
        .with_hint(hint)
}

const RESOURCE_STEP: AuthorizationStep = AuthorizationStep::ResourceMetadata;

/// Finds the metadata of an MCP server; `None` if there is none.
async fn resource_metadata(
    fetcher: &MetadataFetcher<'_>,
    server_url: &str,
    challenges: &[Challenge],
) -> Result<Option<ProtectedResource>, AuthorizationError> {
    if let Some(url) = announced_url(challenges) {
        safe_url::check(url, RESOURCE_STEP, "announced metadata URL")?;
        let document = fetcher.require(url, RESOURCE_STEP).await?;
        return read_resource_metadata(&document, server_url).map(Some);
    }
    for url in well_known::protected_resource(server_url) {
        if let Some(document) = fetcher.probe(&url, RESOURCE_STEP).await? {
            return read_resource_metadata(&document, server_url).map(Some);
        }
    }
    Ok(None)
}

/// Returns the metadata URL of the challenge.
fn announced_url(challenges: &[Challenge]) -> Option<&str> {
    let for_tokens =
        |challenge: &&Challenge| challenge.is_scheme("bearer") || challenge.is_scheme("dpop");
    let mut challenges = challenges.iter().filter(for_tokens);
    challenges.find_map(|challenge| challenge.parameter("resource_metadata"))
}

/// Parses metadata, and rejects it unless it describes this server.
fn read_resource_metadata(
    document: &MetadataDocument,
    server_url: &str,
) -> Result<ProtectedResource, AuthorizationError> {
    let metadata: ProtectedResource = json::from_slice(&document.body).map_err(|error| {
        let error = oauth_error::sanitize(&error.to_string());
        document.rejected(
            RESOURCE_STEP,
            format!("the metadata of the server is invalid: {error}"),
        )
    })?;
    if !covers_server(&metadata.resource, server_url) {
        let found = oauth_error::sanitize(&metadata.resource);
        let reason = format!("the metadata of `{server_url}` describes another server, `{found}`");
        return Err(document.rejected(RESOURCE_STEP, reason).with_hint(
            "connect to the URL in the metadata if that is the server you want; this server may be trying to get a token for it",
        ));
    }
    if metadata.authorization_servers.is_empty() {
        let reason = "the metadata of the server does not name an authorization server";
        return Err(document.rejected(RESOURCE_STEP, reason));
    }
    Ok(metadata)
}

/// Returns whether a resource identifier is this server, or a parent path of it in the same origin.
///
/// RFC 9728 requires the exact URL. The document at the root of an origin describes the origin, however, and the MCP
/// specification allows that as the identifier of a server. Other origins and sibling paths never match.
fn covers_server(resource: &str, server_url: &str) -> bool {
    let Ok(HttpUrl { origin, path, .. }) = HttpUrl::parse(server_url) else {
        return false;
    };
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let mut paths = above.chain([path]);
    is_same_resource(resource, server_url)
        || paths.any(|path| is_same_resource(resource, &format!("{origin}{path}")))
}

const SERVER_STEP: AuthorizationStep = AuthorizationStep::ServerMetadata;

/// Maximum number of authorization servers that are tried.
const MAX_ISSUERS: usize = 4;

/// Fetches the metadata of an authorization server.
///
/// `revision` is sent in `MCP-Protocol-Version`.
pub async fn server_metadata(
    fetch: &dyn Fetch,
    issuer: &str,
    revision: &str,
) -> Result<AuthorizationServer, AuthorizationError> {
    let fetcher = MetadataFetcher { fetch, revision };
    first_with_metadata(&fetcher, &[issuer.to_owned()]).await
}

/// Returns the first issuer that has metadata; an invalid document ends the search.
async fn first_with_metadata(
    fetcher: &MetadataFetcher<'_>,
    issuers: &[String],
) -> Result<AuthorizationServer, AuthorizationError> {
    let issuers = &issuers[..issuers.len().min(MAX_ISSUERS)];
    for issuer in issuers {
        safe_url::check(issuer, SERVER_STEP, "authorization server")?;
        if let Some(server) = issuer_metadata(fetcher, issuer).await? {
            return Ok(server);
        }
    }
    Err(no_metadata(issuers))
}

/// Finds the authorization server of a server of 2025-03-26, which is its own origin.
async fn for_origin(
    fetcher: &MetadataFetcher<'_>,
    server_url: &str,
) -> Result<(AuthorizationServer, DiscoveryMethod), AuthorizationError> {
    let origin = origin(server_url);
    let url = format!("{origin}/.well-known/oauth-authorization-server");
    let Some(document) = fetcher.probe(&url, SERVER_STEP).await? else {
        return Ok((default_endpoints(origin), DiscoveryMethod::DefaultEndpoints));
    };
    let issuer = issuer_as_published(&document, origin);
    Ok((
        read_server_metadata(&document, &issuer)?,
        DiscoveryMethod::OriginMetadata,
    ))
}

/// Returns the default endpoints of 2025-03-26, which requires PKCE.
fn default_endpoints(origin: &str) -> AuthorizationServer {
    AuthorizationServer {
        issuer: origin.to_owned(),
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: Some(format!("{origin}/token")),
        registration_endpoint: Some(format!("{origin}/register")),
        code_challenge_methods_supported: vec!["S256".to_owned()],
        ..AuthorizationServer::default()
    }
}

async fn issuer_metadata(
    fetcher: &MetadataFetcher<'_>,
    issuer: &str,
) -> Result<Option<AuthorizationServer>, AuthorizationError> {
    for url in well_known::authorization_server(issuer) {
        if let Some(document) = fetcher.probe(&url, SERVER_STEP).await? {
            return read_server_metadata(&document, &issuer_as_published(&document, issuer))
                .map(Some);
        }
    }
    Ok(None)
}

/// Returns an issuer without a path as its document spells it: with or without a trailing slash, both of which lead to
/// this document.
///
/// Some server libraries normalize URLs, such as `mcp` 1.x for Python, and add the slash to `https://a.example`.
fn issuer_as_published<'a>(document: &MetadataDocument, issuer: &'a str) -> Cow<'a, str> {
    let Some(url) = HttpUrl::parse(issuer)
        .ok()
        .filter(|url| url.path_without_root().is_empty())
    else {
        return issuer.into();
    };
    let other: Cow<'a, str> = match url.path {
        "" => format!("{issuer}/").into(),
        _ => url.origin.into(),
    };
    match AuthorizationServer::parse(&document.body, &other) {
        Ok(_) => other,
        Err(_) => issuer.into(),
    }
}

/// Parses metadata, and rejects it if the issuer differs or an endpoint is unsafe.
fn read_server_metadata(
    document: &MetadataDocument,
    issuer: &str,
) -> Result<AuthorizationServer, AuthorizationError> {
    let server = AuthorizationServer::parse(&document.body, issuer).map_err(|error| {
        let reason = match error {
            InvalidMetadata::IssuerMismatch { found } => format!(
                "the metadata of the authorization server `{issuer}` belongs to another one, `{}`",
                oauth_error::sanitize(&found)
            ),
            error => oauth_error::sanitize(&error.to_string()),
        };
        document.rejected(SERVER_STEP, reason)
    })?;
    if server.token_endpoint.is_none() {
        return Err(document.rejected(SERVER_STEP, format!("`{issuer}` lacks a token endpoint")));
    }
    check_endpoints(&server).map_err(|failure| document.attach_request(failure))?;
    Ok(server)
}

fn check_endpoints(server: &AuthorizationServer) -> Result<(), AuthorizationError> {
    let endpoints = [
        ("authorization endpoint", &server.authorization_endpoint),
        ("token endpoint", &server.token_endpoint),
        ("registration endpoint", &server.registration_endpoint),
        (
            "device authorization endpoint",
            &server.device_authorization_endpoint,
        ),
    ];
    for (what, url) in endpoints {
        if let Some(url) = url {
            safe_url::check(url, SERVER_STEP, what)?;
        }
    }
    Ok(())
}

fn no_metadata(issuers: &[String]) -> AuthorizationError {
    let tried_urls = issuers
        .iter()
        .flat_map(|issuer| well_known::authorization_server(issuer));
    let tried_urls: Vec<_> = tried_urls.collect();
    AuthorizationError::new(
        SERVER_STEP,
        format!(
            "no metadata found for `{}`",
            oauth_error::sanitize(&issuers.join("` or `"))
        ),
    )
    .with_request(RequestDescription(format!(
        "GET {}",
        oauth_error::sanitize(&tried_urls.join(", "))
    )))
    .with_response("not found")
    .with_hint("ask the operator of the server to name an authorization server that has metadata")
}
