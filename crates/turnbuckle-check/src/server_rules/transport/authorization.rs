//! Who is let in, and what those are told who are not.

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
    .requirement("Whoever shows no token is answered with 401.")
    .fix("Answer a request without a token with 401; 403 is for tokens that do not suffice.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(missing(ctx))),
    Rule::server(
        "authorization.invalid-401",
        Area::Authorization,
        &["auth.401.invalid-token", "auth.token.validate"],
    )
    .requirement("Whoever shows a token that is not valid is answered with 401.")
    .fix("Verify every token, and answer with 401 if it is not valid.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(invalid(ctx))),
    Rule::server("authorization.challenge", Area::Authorization, &["auth.token.error"])
        .requirement("A refusal with 401 says in `WWW-Authenticate` which kind of token is wanted.")
        .fix("Send `WWW-Authenticate: Bearer …` with every 401.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(challenge(ctx))),
    Rule::server(
        "authorization.challenge-names-metadata",
        Area::Authorization,
        &["auth.www-authenticate.2025-06-18"],
    )
    .requirement("`WWW-Authenticate` of a 401 says where the metadata of the server is.")
    .fix("Add `resource_metadata=\"…\"` with the URL of the metadata to `WWW-Authenticate`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(names_metadata(ctx))),
    Rule::server(
        "authorization.metadata-announced",
        Area::Authorization,
        &["auth.www-authenticate.or-well-known"],
    )
    .requirement("The metadata of the server is found: by `WWW-Authenticate`, or at its well-known place.")
    .fix("Serve the metadata at `/.well-known/oauth-protected-resource`, followed by the path of the endpoint.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(announced(ctx))),
    Rule::server("authorization.metadata", Area::Authorization, &["auth.prm.server"])
        .requirement("The metadata of the server is a JSON object that names the resource.")
        .fix("Serve a JSON object with `resource` and `authorization_servers`, as RFC 9728 has it.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(readable(ctx))),
    Rule::server("authorization.metadata-resource", Area::Authorization, &["auth.prm.server"])
        .requirement("The resource that the metadata names is this server.")
        .fix("Set `resource` to the URL of the endpoint, or to one above it.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(resource(ctx))),
    Rule::server(
        "authorization.metadata-servers",
        Area::Authorization,
        &["auth.prm.authorization-servers"],
    )
    .requirement("The metadata names at least one authorization server.")
    .fix("List the issuers of tokens in `authorization_servers`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(servers(ctx))),
    Rule::server("authorization.challenge-scope", Area::Authorization, &["auth.scope.challenge"])
        .requirement("`WWW-Authenticate` of a 401 says which scopes are needed.")
        .fix("Add `scope=\"…\"` to `WWW-Authenticate`.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(scope(ctx))),
    Rule::server(
        "authorization.no-offline-access",
        Area::Authorization,
        &["auth.refresh.server-no-offline"],
    )
    .requirement("`offline_access` is neither demanded nor offered: it is between client and authorization server.")
    .fix("Leave `offline_access` out of challenges and of `scopes_supported`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(offline(ctx))),
    Rule::server(
        "authorization.before-anything-else",
        Area::Authorization,
        &["auth.token.before-processing"],
    )
    .requirement("Whoever shows no token learns nothing: not even which methods there are.")
    .fix("Look for the token before the body is read.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(before(ctx))),
    Rule::server(
        "authorization.session-is-no-token",
        Area::Authorization,
        &["http.session.not-auth", "security.session.verify-requests"],
    )
    .requirement("A session id does not stand for a token: every request shows its own.")
    .fix("Verify the token of every request, in a session too.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(session(ctx))),
    Rule::server("authorization.required", Area::Authorization, &["http.authenticate"])
        .requirement("A server that other machines reach answers nobody without credentials.")
        .fix("Demand a token, as the authorization specification says, or let only this machine connect.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(required(ctx))),
];

async fn missing(ctx: &CheckContext) -> Outcome {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("the status {status}"))),
    }
}

async fn invalid(ctx: &CheckContext) -> Outcome {
    ChallengeProbe::require_challenge(ctx, None).await?;
    let probe = ChallengeProbe::open(ctx, Some("Bearer turnbuckle-check-is-no-token")).await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("the status {status}"))),
    }
}

async fn challenge(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    match probe.header() {
        None => Err(probe.violation("401 without `WWW-Authenticate`")),
        Some(_) if probe.bearer().is_some() => probe.evidence(),
        Some(header) => Err(probe.violation(format!("`{header}` asks for no token"))),
    }
}

async fn names_metadata(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    let Some(bearer) = probe.bearer() else {
        return Err(NotPassed::not_tested("no challenge asks for a token"));
    };
    match bearer.parameter("resource_metadata") {
        Some(_) => probe.evidence(),
        None => Err(probe.violation("the challenge has no `resource_metadata`")),
    }
}

async fn announced(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    let named = probe.bearer();
    if named.is_some_and(|bearer| bearer.parameter("resource_metadata").is_some()) {
        return probe.evidence();
    }
    match super::unauthenticated::well_known(ctx).await? {
        Some(found) => Evidence::from_entries(found.entries),
        None => Err(probe.violation(
            "no challenge names the metadata, and there is none at the well-known places",
        )),
    }
}

async fn readable(ctx: &CheckContext) -> Outcome {
    let found = metadata(ctx).await?;
    if found.value["resource"].is_string() {
        Evidence::from_entries(found.entries)
    } else {
        Err(NotPassed::violation(
            "the metadata is no object that names a `resource`",
            found.entries,
        ))
    }
}

async fn resource(ctx: &CheckContext) -> Outcome {
    let found = metadata(ctx).await?;
    let Some(resource) = found.value["resource"].as_str() else {
        return Err(NotPassed::not_tested("the metadata names no resource"));
    };
    let http_client = ctx.http_client()?;
    let (scheme, rest) = resource.split_once("://").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let same =
        without_port(host, scheme).eq_ignore_ascii_case(without_port(http_client.host(), scheme));
    if !same && is_local(ctx)? {
        return Err(NotPassed::not_tested(
            "the server is reached by another name than its own",
        ));
    }
    let ours = http_client.path().split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let above = ours
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if above && same {
        Evidence::from_entries(found.entries)
    } else {
        Err(NotPassed::violation(
            format!("the metadata is about `{resource}`"),
            found.entries,
        ))
    }
}

/// Leaves out a port that goes without saying.
fn without_port<'a>(host: &'a str, scheme: &str) -> &'a str {
    let port = match scheme {
        "https" => ":443",
        _ => ":80",
    };
    host.strip_suffix(port).unwrap_or(host)
}

async fn servers(ctx: &CheckContext) -> Outcome {
    let found = metadata(ctx).await?;
    if !found.value["resource"].is_string() {
        return Err(NotPassed::not_tested("the metadata is none"));
    }
    let servers = found.value["authorization_servers"].as_array();
    let named = servers.is_some_and(|servers| {
        let url =
            |server: &serde_json::Value| server.as_str().is_some_and(|url| url.contains("://"));
        !servers.is_empty() && servers.iter().all(url)
    });
    if named {
        Evidence::from_entries(found.entries)
    } else {
        let observed = format!(
            "`authorization_servers` is {}",
            found.value["authorization_servers"]
        );
        Err(NotPassed::violation(observed, found.entries))
    }
}

async fn scope(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    let Some(bearer) = probe.bearer() else {
        return Err(NotPassed::not_tested("no challenge asks for a token"));
    };
    match bearer.parameter("scope") {
        Some(_) => probe.evidence(),
        None => Err(probe.violation("the challenge has no `scope`")),
    }
}

async fn offline(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    let bearer = probe.bearer();
    let scope = bearer.as_ref().and_then(|bearer| bearer.parameter("scope"));
    if scope.is_some_and(|scope| scope.split(' ').any(|one| one == "offline_access")) {
        return Err(probe.violation("the challenge asks for `offline_access`"));
    }
    let Ok(found) = metadata(ctx).await else {
        return probe.evidence();
    };
    let offered = found.value["scopes_supported"].as_array();
    if offered.is_some_and(|scopes| scopes.iter().any(|one| one == "offline_access")) {
        Err(NotPassed::violation(
            "the metadata offers `offline_access`",
            found.entries,
        ))
    } else {
        probe.evidence()
    }
}

async fn before(ctx: &CheckContext) -> Outcome {
    refused(ctx).await?;
    let probe = ChallengeProbe::ask_for(ctx, "turnbuckle/no-such-method").await?;
    match probe.status {
        401 => probe.evidence(),
        status => Err(probe.violation(format!("the status {status} for an unknown method"))),
    }
}

async fn session(ctx: &CheckContext) -> Outcome {
    let probe = refused(ctx).await?;
    let session = ctx.session().await?;
    if session.id.is_none() {
        return Err(NotPassed::not_applicable("the server has no sessions"));
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
        return Err(NotPassed::not_applicable(
            "only this machine reaches the server",
        ));
    }
    let probe = ChallengeProbe::without_credentials(ctx).await?;
    match probe.status {
        401 | 403 => probe.evidence(),
        200..300 => Err(probe.violation("a conversation begins without credentials")),
        status => Err(NotPassed::not_tested(format!(
            "the server refuses with the status {status}"
        ))),
    }
}

/// Comes without a token; makes sure that it is refused as it should be.
async fn refused(ctx: &CheckContext) -> Result<ChallengeProbe, NotPassed> {
    let probe = ChallengeProbe::require_challenge(ctx, None).await?;
    match probe.status {
        401 => Ok(probe),
        status => Err(NotPassed::not_tested(format!(
            "the server refuses with the status {status}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn a_port_that_goes_without_saying_makes_no_difference() {
        assert_eq!(without_port("example.com:443", "https"), "example.com");
        assert_eq!(without_port("example.com:80", "http"), "example.com");
        assert_eq!(
            without_port("example.com:8443", "https"),
            "example.com:8443"
        );
    }
}
