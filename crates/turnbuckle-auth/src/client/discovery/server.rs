//! The metadata of the authorization server: by RFC 8414, else by OpenID Connect, else, for 2025-03-26, at the origin of the server.

use std::borrow::Cow;

use crate::{
    AuthorizationServer, Failure, InvalidMetadata, Step,
    client::{
        safe_url,
        told::{self, Described},
    },
    fetch::Fetch,
    place::Place,
    well_known,
};

use super::{
    Found,
    document::{Asking, Document},
    origin,
};

const STEP: Step = Step::ServerMetadata;

/// How many of the authorization servers that a resource names are asked.
const MOST_ISSUERS: usize = 4;

/// Reads the metadata of an authorization server that is known by its issuer.
///
/// `revision` is the protocol version that goes along in `MCP-Protocol-Version`.
pub async fn server(
    fetch: &dyn Fetch,
    issuer: &str,
    revision: &str,
) -> Result<AuthorizationServer, Failure> {
    let asking = Asking { fetch, revision };
    first_of(&asking, &[issuer.to_owned()]).await
}

/// Takes the first issuer that has metadata; what is there but wrong ends the search.
pub(super) async fn first_of(
    asking: &Asking<'_>,
    issuers: &[String],
) -> Result<AuthorizationServer, Failure> {
    let issuers = &issuers[..issuers.len().min(MOST_ISSUERS)];
    for issuer in issuers {
        safe_url::check(issuer, STEP, "authorization server")?;
        if let Some(server) = metadata(asking, issuer).await? {
            return Ok(server);
        }
    }
    Err(nowhere(issuers))
}

/// Finds the authorization server of a server of 2025-03-26: its own origin.
pub(super) async fn of_origin(
    asking: &Asking<'_>,
    server_url: &str,
) -> Result<(AuthorizationServer, Found), Failure> {
    let origin = origin(server_url);
    let url = format!("{origin}/.well-known/oauth-authorization-server");
    let Some(document) = asking.probe(&url, STEP).await? else {
        return Ok((default_endpoints(origin), Found::DefaultEndpoints));
    };
    let issuer = as_written(&document, origin);
    Ok((read(&document, &issuer)?, Found::OriginMetadata))
}

/// What 2025-03-26 lets a client assume where there is no metadata. PKCE is required there of everyone.
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

async fn metadata(
    asking: &Asking<'_>,
    issuer: &str,
) -> Result<Option<AuthorizationServer>, Failure> {
    for url in well_known::authorization_server(issuer) {
        if let Some(document) = asking.probe(&url, STEP).await? {
            return read(&document, &as_written(&document, issuer)).map(Some);
        }
    }
    Ok(None)
}

/// Writes an issuer without a path as its document does: with a slash behind it or without, both lead to this document.
///
/// Servers on libraries that normalize URLs, such as `mcp` 1.x for Python, name `https://a.example` with a slash.
fn as_written<'a>(document: &Document, issuer: &'a str) -> Cow<'a, str> {
    let Some(place) = Place::parse(issuer).filter(|place| place.path_below_root().is_empty())
    else {
        return issuer.into();
    };
    let other: Cow<'a, str> = match place.path {
        "" => format!("{issuer}/").into(),
        _ => place.origin.into(),
    };
    match AuthorizationServer::parse(&document.body, &other) {
        Ok(_) => other,
        Err(_) => issuer.into(),
    }
}

/// Reads metadata, and refuses it if it is of somebody else or leads to a place that is not safe.
fn read(document: &Document, issuer: &str) -> Result<AuthorizationServer, Failure> {
    let server = AuthorizationServer::parse(&document.body, issuer).map_err(|error| {
        let reason = match error {
            InvalidMetadata::Issuer { found } => format!(
                "the metadata of the authorization server `{issuer}` is of another one, `{}`",
                told::shown(&found)
            ),
            error => told::shown(&error.to_string()),
        };
        document.refuse(STEP, reason)
    })?;
    if server.token_endpoint.is_none() {
        return Err(document.refuse(STEP, format!("`{issuer}` has no token endpoint")));
    }
    check_endpoints(&server).map_err(|failure| document.blame(failure))?;
    Ok(server)
}

fn check_endpoints(server: &AuthorizationServer) -> Result<(), Failure> {
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
            safe_url::check(url, STEP, what)?;
        }
    }
    Ok(())
}

fn nowhere(issuers: &[String]) -> Failure {
    let asked = issuers
        .iter()
        .flat_map(|issuer| well_known::authorization_server(issuer));
    let asked: Vec<_> = asked.collect();
    Failure::new(
        STEP,
        format!(
            "there is no metadata of `{}`",
            told::shown(&issuers.join("` or `"))
        ),
    )
    .request(Described(format!("GET {}", told::shown(&asked.join(", ")))))
    .answer("nothing is there")
    .cure("whoever runs the server must name an authorization server that has metadata")
}
