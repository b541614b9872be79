//! Authorization: challenges and resource metadata.

use turnbuckle_text::url::HttpUrl;

use super::{
    host_origin::is_local,
    unauthenticated::{ChallengeProbe, metadata},
};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "authorization.missing-401",
        Area::Authorization,
        &["auth.401.required", "auth.status-codes"],
    )
    .requirement("The server responds with 401 to a request without a token.")
    .hint("Respond with 401 to a request without a token; 403 is for tokens with insufficient scope.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(missing(ctx))),
    Rule::server(
        "authorization.invalid-401",
        Area::Authorization,
        &["auth.401.invalid-token", "auth.token.validate"],
    )
    .requirement("The server responds with 401 to a request with an invalid token.")
    .hint("Verify every token, and respond with 401 if it is invalid.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(invalid(ctx))),
    Rule::server("authorization.challenge", Area::Authorization, &["auth.token.error"])
        .requirement("A 401 response has a `WWW-Authenticate` header with a scheme.")
        .hint("Send `WWW-Authenticate: Bearer …` with every 401.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(challenge(ctx))),
    Rule::server(
        "authorization.challenge-names-metadata",
        Area::Authorization,
        &["auth.www-authenticate.2025-06-18"],
    )
    .requirement("`WWW-Authenticate` of a 401 has the URL of the resource metadata.")
    .hint("Add `resource_metadata=\"…\"` with the URL of the metadata to `WWW-Authenticate`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(names_metadata(ctx))),
    Rule::server(
        "authorization.metadata-announced",
        Area::Authorization,
        &["auth.www-authenticate.or-well-known"],
    )
    .requirement("The resource metadata is available: through `WWW-Authenticate`, or at its well-known URL.")
    .hint("Serve the metadata at `/.well-known/oauth-protected-resource`, followed by the path of the endpoint.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(metadata_available(ctx))),
    Rule::server("authorization.metadata", Area::Authorization, &["auth.prm.server"])
        .requirement("The resource metadata is a JSON object with `resource`.")
        .hint("Serve a JSON object with `resource` and `authorization_servers`, as RFC 9728 defines.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(readable(ctx))),
    Rule::server("authorization.metadata-resource", Area::Authorization, &["auth.prm.server"])
        .requirement("`resource` of the metadata is the URL of this server.")
        .hint("Set `resource` to the URL of the endpoint, or to a parent of it.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(resource(ctx))),
    Rule::server(
        "authorization.metadata-servers",
        Area::Authorization,
        &["auth.prm.authorization-servers"],
    )
    .requirement("The metadata lists at least one authorization server.")
    .hint("List the issuers of tokens in `authorization_servers`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(servers(ctx))),
    Rule::server("authorization.challenge-scope", Area::Authorization, &["auth.scope.challenge"])
        .requirement("`WWW-Authenticate` of a 401 has the required scopes.")
        .hint("Add `scope=\"…\"` to `WWW-Authenticate`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(scope(ctx))),
    Rule::server(
        "authorization.no-offline-access",
        Area::Authorization,
        &["auth.refresh.server-no-offline"],
    )
    .requirement("The server neither requires nor advertises `offline_access`, which concerns only client and authorization server.")
    .hint("Remove `offline_access` from challenges and from `scopes_supported`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(offline(ctx))),
    Rule::server(
        "authorization.before-anything-else",
        Area::Authorization,
        &["auth.token.before-processing"],
    )
    .requirement("The server checks the token before it processes the request.")
    .hint("Check the token before reading the body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(checked_first(ctx))),
    Rule::server(
        "authorization.session-is-no-token",
        Area::Authorization,
        &["http.session.not-auth", "security.session.verify-requests"],
    )
    .requirement("The server does not accept a session id in place of a token.")
    .hint("Verify the token of every request, also within a session.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(session(ctx))),
    Rule::server("authorization.required", Area::Authorization, &["http.authenticate"])
        .requirement("A server that other machines can reach requires credentials.")
        .hint("Require a token, as the authorization specification defines, or bind to the loopback interface.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(required(ctx))),
];

async fn missing(ctx: &CheckContext) -> Outcome {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("HTTP status {status}"))),
    }
}

async fn invalid(ctx: &CheckContext) -> Outcome {
    ChallengeProbe::require_challenge(ctx, None).await?;
    let probe =
        ChallengeProbe::send_opening(ctx, Some("Bearer turnbuckle-check-invalid-token")).await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("HTTP status {status}"))),
    }
}

async fn challenge(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    match probe.header() {
        None => Err(probe.violation("401 without `WWW-Authenticate`")),
        Some(_) if probe.bearer().is_some() => probe.evidence(),
        Some(header) => Err(probe.violation(format!("`{header}` does not request a token"))),
    }
}

async fn names_metadata(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    let Some(bearer) = probe.bearer() else {
        return Err(NotPassed::not_tested("no challenge requests a token"));
    };
    match bearer.parameter("resource_metadata") {
        Some(_) => probe.evidence(),
        None => Err(probe.violation("the challenge lacks `resource_metadata`")),
    }
}

async fn metadata_available(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    let named = probe.bearer();
    if named.is_some_and(|bearer| bearer.parameter("resource_metadata").is_some()) {
        return probe.evidence();
    }
    match super::unauthenticated::well_known(ctx).await? {
        Some(metadata) => Evidence::from_entries(metadata.entries),
        None => Err(probe.violation(
            "no challenge has the URL of the metadata, and the well-known URLs lack it",
        )),
    }
}

async fn readable(ctx: &CheckContext) -> Outcome {
    let metadata = metadata(ctx).await?;
    if metadata.value["resource"].is_string() {
        Evidence::from_entries(metadata.entries)
    } else {
        Err(NotPassed::violation(
            "the metadata is not an object with `resource`",
            metadata.entries,
        ))
    }
}

async fn resource(ctx: &CheckContext) -> Outcome {
    let metadata = metadata(ctx).await?;
    let Some(resource) = metadata.value["resource"].as_str() else {
        return Err(NotPassed::not_tested("the metadata lacks `resource`"));
    };
    let http_client = ctx.http_client()?;
    let violation = || {
        let observed = format!("the `resource` of the metadata is `{resource}`");
        NotPassed::violation(observed, metadata.entries)
    };
    let url = HttpUrl::parse(resource).map_err(|_| violation())?;
    let is_same_host = http_client.is_host_of(&url);
    if !is_same_host && is_local(ctx)? {
        return Err(NotPassed::not_tested(
            "the server is reached under a different name",
        ));
    }
    let endpoint_path = http_client.path().split('?').next().unwrap_or_default();
    let path = url.path.trim_end_matches('/');
    let is_parent = endpoint_path
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_parent && is_same_host {
        Evidence::from_entries(metadata.entries)
    } else {
        Err(violation())
    }
}

async fn servers(ctx: &CheckContext) -> Outcome {
    let metadata = metadata(ctx).await?;
    if !metadata.value["resource"].is_string() {
        return Err(NotPassed::not_tested("the metadata is invalid"));
    }
    let servers = metadata.value["authorization_servers"].as_array();
    let lists_urls = servers.is_some_and(|servers| {
        let is_url =
            |server: &serde_json::Value| server.as_str().is_some_and(|url| url.contains("://"));
        !servers.is_empty() && servers.iter().all(is_url)
    });
    if lists_urls {
        Evidence::from_entries(metadata.entries)
    } else {
        let observed = format!(
            "`authorization_servers` is {}",
            metadata.value["authorization_servers"]
        );
        Err(NotPassed::violation(observed, metadata.entries))
    }
}

async fn scope(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    let Some(bearer) = probe.bearer() else {
        return Err(NotPassed::not_tested("no challenge requests a token"));
    };
    match bearer.parameter("scope") {
        Some(_) => probe.evidence(),
        None => Err(probe.violation("the challenge lacks `scope`")),
    }
}

async fn offline(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    let bearer = probe.bearer();
    let scope = bearer.as_ref().and_then(|bearer| bearer.parameter("scope"));
    if scope.is_some_and(|scope| scope.split(' ').any(|one| one == "offline_access")) {
        return Err(probe.violation("the challenge requires `offline_access`"));
    }
    let Ok(metadata) = metadata(ctx).await else {
        return probe.evidence();
    };
    let advertised = metadata.value["scopes_supported"].as_array();
    if advertised.is_some_and(|scopes| scopes.iter().any(|one| one == "offline_access")) {
        Err(NotPassed::violation(
            "the metadata advertises `offline_access`",
            metadata.entries,
        ))
    } else {
        probe.evidence()
    }
}

async fn checked_first(ctx: &CheckContext) -> Outcome {
    require_401(ctx).await?;
    let probe = ChallengeProbe::request_without_token(ctx, "turnbuckle/no-such-method").await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("HTTP status {status} for an unknown method"))),
    }
}

async fn session(ctx: &CheckContext) -> Outcome {
    let probe = require_401(ctx).await?;
    let session = ctx.session().await?;
    if session.id.is_none() {
        return Err(NotPassed::not_applicable(
            "the server does not use sessions",
        ));
    }
    let raw_request = session.noop_request()?.without("authorization");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(401) => Evidence::from_entries(probe.entries.into_iter().chain(response.entries())),
        _ => Err(response.violation(format!(
            "{} without a token",
            super::http::status(&response)
        ))),
    }
}

async fn required(ctx: &CheckContext) -> Outcome {
    if is_local(ctx)? {
        return Err(NotPassed::not_applicable("the server is local"));
    }
    let probe = ChallengeProbe::without_credentials(ctx).await?;
    match probe.status {
        401 | 403 => probe.evidence(),
        200..300 => Err(probe.violation("the server accepts a request without credentials")),
        status => Err(NotPassed::not_tested(format!(
            "the server responds with HTTP status {status}"
        ))),
    }
}

/// Sends a request without a token, and requires the status 401.
async fn require_401(ctx: &CheckContext) -> Result<ChallengeProbe, NotPassed> {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    match probe.status {
        401 => Ok(probe),
        status => Err(NotPassed::not_tested(format!(
            "the server responds with HTTP status {status}"
        ))),
    }
}
