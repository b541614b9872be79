//! Who is let in, and what those are told who are not.

mod door;

use self::door::{Door, metadata};
use super::origins::is_local;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "authorization.missing-401",
        Area::Authorization,
        &["auth.401.required", "auth.status-codes"],
    )
    .says("Whoever shows no token is answered with 401.")
    .cure("Answer a request without a token with 401; 403 is for tokens that do not suffice.")
    .on(On::Http)
    .ask(|visit| Box::pin(missing(visit))),
    Rule::server(
        "authorization.invalid-401",
        Area::Authorization,
        &["auth.401.invalid-token", "auth.token.validate"],
    )
    .says("Whoever shows a token that is not valid is answered with 401.")
    .cure("Verify every token, and answer with 401 if it is not valid.")
    .on(On::Http)
    .ask(|visit| Box::pin(invalid(visit))),
    Rule::server("authorization.challenge", Area::Authorization, &["auth.token.error"])
        .says("A refusal with 401 says in `WWW-Authenticate` which kind of token is wanted.")
        .cure("Send `WWW-Authenticate: Bearer …` with every 401.")
        .on(On::Http)
        .ask(|visit| Box::pin(challenge(visit))),
    Rule::server(
        "authorization.challenge-names-metadata",
        Area::Authorization,
        &["auth.www-authenticate.2025-06-18"],
    )
    .says("`WWW-Authenticate` of a 401 says where the metadata of the server is.")
    .cure("Add `resource_metadata=\"…\"` with the URL of the metadata to `WWW-Authenticate`.")
    .on(On::Http)
    .ask(|visit| Box::pin(names_metadata(visit))),
    Rule::server(
        "authorization.metadata-announced",
        Area::Authorization,
        &["auth.www-authenticate.or-well-known"],
    )
    .says("The metadata of the server is found: by `WWW-Authenticate`, or at its well-known place.")
    .cure("Serve the metadata at `/.well-known/oauth-protected-resource`, followed by the path of the endpoint.")
    .on(On::Http)
    .ask(|visit| Box::pin(announced(visit))),
    Rule::server("authorization.metadata", Area::Authorization, &["auth.prm.server"])
        .says("The metadata of the server is a JSON object that names the resource.")
        .cure("Serve a JSON object with `resource` and `authorization_servers`, as RFC 9728 has it.")
        .on(On::Http)
        .ask(|visit| Box::pin(readable(visit))),
    Rule::server("authorization.metadata-resource", Area::Authorization, &["auth.prm.server"])
        .says("The resource that the metadata names is this server.")
        .cure("Set `resource` to the URL of the endpoint, or to one above it.")
        .on(On::Http)
        .ask(|visit| Box::pin(resource(visit))),
    Rule::server(
        "authorization.metadata-servers",
        Area::Authorization,
        &["auth.prm.authorization-servers"],
    )
    .says("The metadata names at least one authorization server.")
    .cure("List the issuers of tokens in `authorization_servers`.")
    .on(On::Http)
    .ask(|visit| Box::pin(servers(visit))),
    Rule::server("authorization.challenge-scope", Area::Authorization, &["auth.scope.challenge"])
        .says("`WWW-Authenticate` of a 401 says which scopes are needed.")
        .cure("Add `scope=\"…\"` to `WWW-Authenticate`.")
        .on(On::Http)
        .ask(|visit| Box::pin(scope(visit))),
    Rule::server(
        "authorization.no-offline-access",
        Area::Authorization,
        &["auth.refresh.server-no-offline"],
    )
    .says("`offline_access` is neither demanded nor offered: it is between client and authorization server.")
    .cure("Leave `offline_access` out of challenges and of `scopes_supported`.")
    .on(On::Http)
    .ask(|visit| Box::pin(offline(visit))),
    Rule::server(
        "authorization.before-anything-else",
        Area::Authorization,
        &["auth.token.before-processing"],
    )
    .says("Whoever shows no token learns nothing: not even which methods there are.")
    .cure("Look for the token before the body is read.")
    .on(On::Http)
    .ask(|visit| Box::pin(before(visit))),
    Rule::server(
        "authorization.session-is-no-token",
        Area::Authorization,
        &["http.session.not-auth", "security.session.verify-requests"],
    )
    .says("A session id does not stand for a token: every request shows its own.")
    .cure("Verify the token of every request, in a session too.")
    .on(On::Http)
    .ask(|visit| Box::pin(session(visit))),
    Rule::server("authorization.required", Area::Authorization, &["http.authenticate"])
        .says("A server that other machines reach answers nobody without credentials.")
        .cure("Demand a token, as the authorization specification says, or let only this machine connect.")
        .on(On::Http)
        .ask(|visit| Box::pin(required(visit))),
];

async fn missing(visit: &Visit) -> Outcome {
    let door = Door::knock(visit, None).await?;
    match door.status {
        401 => door.seen(),
        status => Err(door.broken(format!("the status {status}"))),
    }
}

async fn invalid(visit: &Visit) -> Outcome {
    Door::knock(visit, None).await?;
    let door = Door::open(visit, Some("Bearer turnbuckle-check-is-no-token")).await?;
    match door.status {
        401 => door.seen(),
        status => Err(door.broken(format!("the status {status}"))),
    }
}

async fn challenge(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    match door.header() {
        None => Err(door.broken("401 without `WWW-Authenticate`")),
        Some(_) if door.bearer().is_some() => door.seen(),
        Some(header) => Err(door.broken(format!("`{header}` asks for no token"))),
    }
}

async fn names_metadata(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    let Some(bearer) = door.bearer() else {
        return Err(Unmet::not_tested("no challenge asks for a token"));
    };
    match bearer.parameter("resource_metadata") {
        Some(_) => door.seen(),
        None => Err(door.broken("the challenge has no `resource_metadata`")),
    }
}

async fn announced(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    let named = door.bearer();
    if named.is_some_and(|bearer| bearer.parameter("resource_metadata").is_some()) {
        return door.seen();
    }
    match door::well_known(visit).await? {
        Some(found) => Seen::at(found.entries),
        None => Err(door
            .broken("no challenge names the metadata, and there is none at the well-known places")),
    }
}

async fn readable(visit: &Visit) -> Outcome {
    let found = metadata(visit).await?;
    match found.value["resource"].is_string() {
        true => Seen::at(found.entries),
        false => Err(Unmet::broken(
            "the metadata is no object that names a `resource`",
            found.entries,
        )),
    }
}

async fn resource(visit: &Visit) -> Outcome {
    let found = metadata(visit).await?;
    let Some(resource) = found.value["resource"].as_str() else {
        return Err(Unmet::not_tested("the metadata names no resource"));
    };
    let caller = visit.caller()?;
    let (scheme, rest) = resource.split_once("://").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let same = without_port(host, scheme).eq_ignore_ascii_case(without_port(caller.host(), scheme));
    if !same && is_local(visit)? {
        return Err(Unmet::not_tested(
            "the server is reached by another name than its own",
        ));
    }
    let ours = caller.path().split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let above = ours
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match above && same {
        true => Seen::at(found.entries),
        false => Err(Unmet::broken(
            format!("the metadata is about `{resource}`"),
            found.entries,
        )),
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

async fn servers(visit: &Visit) -> Outcome {
    let found = metadata(visit).await?;
    if !found.value["resource"].is_string() {
        return Err(Unmet::not_tested("the metadata is none"));
    }
    let servers = found.value["authorization_servers"].as_array();
    let named = servers.is_some_and(|servers| {
        let url =
            |server: &serde_json::Value| server.as_str().is_some_and(|url| url.contains("://"));
        !servers.is_empty() && servers.iter().all(url)
    });
    match named {
        true => Seen::at(found.entries),
        false => {
            let what = format!(
                "`authorization_servers` is {}",
                found.value["authorization_servers"]
            );
            Err(Unmet::broken(what, found.entries))
        }
    }
}

async fn scope(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    let Some(bearer) = door.bearer() else {
        return Err(Unmet::not_tested("no challenge asks for a token"));
    };
    match bearer.parameter("scope") {
        Some(_) => door.seen(),
        None => Err(door.broken("the challenge has no `scope`")),
    }
}

async fn offline(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    let bearer = door.bearer();
    let scope = bearer.as_ref().and_then(|bearer| bearer.parameter("scope"));
    if scope.is_some_and(|scope| scope.split(' ').any(|one| one == "offline_access")) {
        return Err(door.broken("the challenge asks for `offline_access`"));
    }
    let Ok(found) = metadata(visit).await else {
        return door.seen();
    };
    let offered = found.value["scopes_supported"].as_array();
    match offered.is_some_and(|scopes| scopes.iter().any(|one| one == "offline_access")) {
        true => Err(Unmet::broken(
            "the metadata offers `offline_access`",
            found.entries,
        )),
        false => door.seen(),
    }
}

async fn before(visit: &Visit) -> Outcome {
    refused(visit).await?;
    let door = Door::ask_for(visit, "turnbuckle/no-such-method").await?;
    match door.status {
        401 => door.seen(),
        status => Err(door.broken(format!("the status {status} for an unknown method"))),
    }
}

async fn session(visit: &Visit) -> Outcome {
    let door = refused(visit).await?;
    let session = visit.session().await?;
    if session.id.is_none() {
        return Err(Unmet::not_applicable("the server has no sessions"));
    }
    let draft = session.harmless()?.without("authorization");
    let answer = session.exchange(draft.deliberate()).await?;
    match answer.status {
        Some(401) => Seen::at(door.entries.into_iter().chain(answer.entries())),
        _ => Err(answer.broken(format!("{} without a token", super::http::status(&answer)))),
    }
}

async fn required(visit: &Visit) -> Outcome {
    if is_local(visit)? {
        return Err(Unmet::not_applicable(
            "only this machine reaches the server",
        ));
    }
    let door = Door::without_credentials(visit).await?;
    match door.status {
        401 | 403 => door.seen(),
        200..300 => Err(door.broken("a conversation begins without credentials")),
        status => Err(Unmet::not_tested(format!(
            "the server refuses with the status {status}"
        ))),
    }
}

/// Comes without a token; makes sure that it is refused as it should be.
async fn refused(visit: &Visit) -> Result<Door, Unmet> {
    let door = Door::knock(visit, None).await?;
    match door.status {
        401 => Ok(door),
        status => Err(Unmet::not_tested(format!(
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
