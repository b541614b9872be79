//! The authorization flow, as far as a client gets without a user.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_text::{
    percent,
    url::{HttpUrl, is_plain_http_over_network},
};

use crate::{
    engine::{
        outcome::{Evidence, NotPassed, Outcome},
        transcript::TranscriptEntry,
    },
    mock_server::{
        Scenario,
        scenario::requires_token::{CLIENTS, LOG_IN, RESOURCE, TOKEN, TOKENS, query_of},
        scenario_run::{ScenarioRun, ScenarioRuns},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.auth.resource-metadata", Area::Authorization, &[
        "auth.prm.client",
        "auth.www-authenticate.parse",
        "auth.prm.client-order",
    ])
    .requirement("After a 401, the client fetches the metadata URL of the challenge.")
    .hint("Fetch the URL in `resource_metadata` of `WWW-Authenticate` before any well-known URL.")
    .transports(Transports::Http)
    .scenarios(&[Scenario::RequiresToken], resource_metadata),
    Rule::client("client.auth.server-metadata", Area::Authorization, &[
        "auth.metadata.2025-03-26.client",
        "auth.metadata.2025-03-26.base-url",
        "auth.asm.client-2025-06-18",
        "auth.asm.client-both",
        "auth.asm.order-path",
    ])
    .requirement("The client tries the well-known URLs of the authorization server in order.")
    .hint("For an issuer with a path, try `/.well-known/oauth-authorization-server` and `/.well-known/openid-configuration` followed by the path, then the path followed by `/.well-known/openid-configuration`.")
    .transports(Transports::Http)
    .scenarios(&[Scenario::RequiresToken], server_metadata),
    Rule::client("client.auth.application-type", Area::Authorization, &["auth.dcr.application-type"])
        .requirement("A registration has `application_type`.")
        .hint("Send `application_type` `native` or `web` when registering.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], application_type),
    Rule::client("client.auth.registers", Area::Authorization, &["auth.dcr.2025-06-18"])
        .requirement("A client that is unknown to the authorization server registers.")
        .hint("Send the client metadata to the `registration_endpoint`, and use the returned `client_id`.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], registers),
    Rule::client("client.auth.pkce", Area::Authorization, &["auth.pkce.required", "auth.pkce.s256"])
        .requirement("The authorization uses PKCE with S256.")
        .hint("Send `code_challenge` and `code_challenge_method=S256` with the authorization request, and `code_verifier` with the token request.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], pkce),
    Rule::client("client.auth.resource", Area::Authorization, &[
        "auth.resource.implement",
        "auth.resource.both-requests",
        "auth.resource.identify",
        "auth.resource.always",
    ])
    .requirement("The authorization and token requests have `resource`.")
    .hint("Send `resource` with the URL of the MCP server in both requests.")
    .transports(Transports::Http)
    .scenarios(&[Scenario::RequiresToken], resource),
    Rule::client("client.auth.state", Area::Authorization, &["auth.redirect.state"])
        .requirement("The authorization request has `state`.")
        .hint("Send a random `state` with the authorization request, and compare it with the returned one.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], state),
    Rule::client("client.auth.redirect", Area::Authorization, &["auth.redirect.localhost-or-https"])
        .requirement("The redirect URI is on localhost or uses https.")
        .hint("Use a redirect URI on localhost or with https.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], redirect),
    Rule::client("client.auth.token-always", Area::Authorization, &[
        "auth.token.header",
        "auth.token.every-request",
    ])
    .requirement("Every request has the token in the `Authorization` header.")
    .hint("Send `Authorization: Bearer` with every POST, GET and DELETE after obtaining a token.")
    .transports(Transports::Http)
    .scenarios(&[Scenario::RequiresToken], token_always),
    Rule::client("client.auth.token-not-in-query", Area::Authorization, &["auth.token.not-in-query"])
        .requirement("Tokens are not sent in URLs.")
        .hint("Send tokens in the `Authorization` header only.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::RequiresToken], token_not_in_query),
];

/// An HTTP request of the authorization flow.
struct AuthorizationStep<'a> {
    number: usize,
    line: &'a str,
    host: &'a str,
    body: &'a str,
}

fn steps(run: &ScenarioRun) -> impl Iterator<Item = AuthorizationStep<'_>> {
    run.http_requests()
        .map(|(number, head, entry)| AuthorizationStep {
            number,
            line: &head.start_line,
            host: head.header("host").unwrap_or_default(),
            body: &entry.text,
        })
}

/// Returns the run and the first rejected request.
fn first_rejected(runs: &ScenarioRuns) -> Result<(&ScenarioRun, usize), NotPassed> {
    let run = runs.get(Scenario::RequiresToken)?;
    let first = steps(run)
        .next()
        .ok_or_else(|| NotPassed::not_tested("the client did not connect"))?;
    // A client without authorization support is allowed; it only repeats requests to the endpoint.
    if steps(run).any(|step| !step.line.ends_with(" /mcp")) {
        Ok((run, first.number))
    } else {
        Err(NotPassed::not_applicable(
            "the client does not react to 401",
        ))
    }
}

fn step<'a>(
    run: &'a ScenarioRun,
    method: &str,
    path: &str,
    why_not: &str,
) -> Result<AuthorizationStep<'a>, NotPassed> {
    let found = steps(run).find(|step| {
        let (verb, rest) = step.line.split_once(' ').unwrap_or_default();
        verb == method && rest.split('?').next() == Some(path)
    });
    found.ok_or_else(|| NotPassed::not_tested(why_not))
}

fn log_in(run: &ScenarioRun) -> Result<AuthorizationStep<'_>, NotPassed> {
    step(run, "GET", LOG_IN, "the authorization URL was not opened")
}

fn exchange(run: &ScenarioRun) -> Result<AuthorizationStep<'_>, NotPassed> {
    step(run, "POST", TOKENS, "the client sent no token request")
}

impl AuthorizationStep<'_> {
    /// Returns a parameter of the query or the form.
    fn value(&self, name: &str) -> Option<String> {
        if self.body.is_empty() {
            percent::form_value(query_of(self.line), name)
        } else {
            percent::form_value(self.body, name)
        }
    }

    /// Returns whether a URI identifies the server by its endpoint or its origin.
    fn is_at(&self, uri: &str) -> bool {
        if self.host.is_empty() {
            return uri.ends_with("/mcp");
        }
        match (HttpUrl::parse(uri), self.host.parse()) {
            (Ok(url), Ok(host)) => {
                let is_path = ["", "/", "/mcp", "/mcp/"].contains(&url.path);
                url.is_at(&host) && is_path && url.query.is_empty()
            }
            _ => false,
        }
    }

    fn violation(&self, observed: impl Into<String>) -> Outcome {
        Err(NotPassed::violation(observed, [self.number]))
    }
}

fn resource_metadata(runs: &ScenarioRuns) -> Outcome {
    let (run, first) = first_rejected(runs)?;
    let other = steps(run).find(|step| step.line.contains("oauth-protected-resource"));
    let announced = steps(run).find(|step| step.line == format!("GET {RESOURCE}"));
    // Earlier revisions do not define the order.
    let ordered = runs.revision >= Revision::V2025_11_25;
    match (announced, other) {
        (Some(challenge_url), Some(other_url))
            if ordered && other_url.number < challenge_url.number =>
        {
            let violation =
                NotPassed::violation("the client tried another URL first", [other_url.number]);
            Err(violation.for_requirement("auth.prm.client-order"))
        }
        (Some(challenge_url), _) => Evidence::from_entries([first, challenge_url.number]),
        (None, _) => {
            let observed = format!("`{RESOURCE}` of the challenge was not fetched");
            Err(NotPassed::violation(observed, [first]))
        }
    }
}

fn server_metadata(runs: &ScenarioRuns) -> Outcome {
    let (run, first) = first_rejected(runs)?;
    let uses_authorization_server = runs.revision < Revision::V2025_06_18
        || steps(run).any(|step| step.line == format!("GET {RESOURCE}"));
    if !uses_authorization_server {
        return Err(NotPassed::not_tested(
            "the client did not find the authorization server",
        ));
    }
    let locations = metadata_locations(runs.revision);
    let fetched = fetched_metadata(run, locations);
    let mut order: Vec<_> = fetched.iter().map(|(_, path)| *path).collect();
    order.dedup();
    let entries: Vec<_> = fetched.iter().map(|(number, _)| *number).collect();
    if order == locations {
        return Evidence::from_entries(entries);
    }
    let observed = format!("fetched {order:?} instead of {locations:?}");
    let entries = if entries.is_empty() {
        vec![first]
    } else {
        entries
    };
    let violation = NotPassed::violation(observed, entries);
    Err(match misplaced_metadata(runs.revision, &order) {
        Some(requirement) => violation.for_requirement(requirement),
        None => violation,
    })
}

/// The metadata of an authorization server by RFC 8414, and by OpenID Connect.
const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID_METADATA: &str = "/.well-known/openid-configuration";

/// Returns the paths that a client of a revision tries, in order.
fn metadata_locations(revision: Revision) -> &'static [&'static str] {
    match revision {
        Revision::V2025_03_26 => &[OAUTH_METADATA],
        Revision::V2025_06_18 => &["/.well-known/oauth-authorization-server/as"],
        _ => &[
            "/.well-known/oauth-authorization-server/as",
            "/.well-known/openid-configuration/as",
            "/as/.well-known/openid-configuration",
        ],
    }
}

/// Returns the metadata requests to these locations, up to the one that succeeds; the client may repeat them later. A
/// client that uses none of them may use other locations.
fn fetched_metadata<'a>(run: &'a ScenarioRun, locations: &[&str]) -> Vec<(usize, &'a str)> {
    let requests =
        steps(run).filter_map(|step| Some((step.number, step.line.strip_prefix("GET ")?)));
    let requests: Vec<_> = requests
        .filter(|(_, path)| path.contains(OAUTH_METADATA) || path.contains(OPENID_METADATA))
        .collect();
    let is_location = |(_, path): &&(usize, &str)| locations.contains(path);
    let mut expected: Vec<_> = requests.iter().filter(is_location).copied().collect();
    if expected.is_empty() {
        return requests;
    }
    let found = expected
        .iter()
        .position(|(_, path)| Some(path) == locations.last());
    expected.truncate(found.map_or(expected.len(), |found| found + 1));
    expected
}

/// Returns the requirement that wrong metadata locations break, if it is not the first of the rule: that no metadata is
/// requested, or only one kind of it.
fn misplaced_metadata(revision: Revision, order: &[&str]) -> Option<&'static str> {
    let has = |kind: &str| order.iter().any(|path| path.contains(kind));
    match revision {
        Revision::V2025_03_26 if !order.is_empty() => Some("auth.metadata.2025-03-26.base-url"),
        _ if revision >= Revision::V2025_11_25 && has(OAUTH_METADATA) && has(OPENID_METADATA) => {
            Some("auth.asm.order-path")
        }
        _ => None,
    }
}

fn registers(runs: &ScenarioRuns) -> Outcome {
    let (run, first) = first_rejected(runs)?;
    if let Ok(registration) = step(run, "POST", CLIENTS, "") {
        return Evidence::from_entries([first, registration.number]);
    }
    let log_in = log_in(run)?;
    match log_in.value("client_id") {
        // A client metadata document replaces a registration.
        Some(id) if id.starts_with("https://") => Evidence::from_entries([first, log_in.number]),
        Some(id) => log_in.violation(format!("`{id}` was not registered")),
        None => Err(NotPassed::not_tested(
            "the authorization request lacks `client_id`",
        )),
    }
}

fn application_type(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let registering = step(run, "POST", CLIENTS, "the client does not register")?;
    let client: Value = serde_json::from_str(registering.body).unwrap_or_default();
    if ["native", "web"]
        .iter()
        .any(|kind| client["application_type"] == *kind)
    {
        Evidence::from_entries([registering.number])
    } else {
        registering.violation(format!(
            "`application_type` is {}",
            client["application_type"]
        ))
    }
}

fn pkce(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let log_in = log_in(run)?;
    let Some(challenge) = log_in.value("code_challenge") else {
        return log_in.violation("`code_challenge` is missing");
    };
    let method = log_in.value("code_challenge_method");
    if challenge.len() < 43 || method.as_deref() != Some("S256") {
        let observed = format!("`code_challenge_method` is {method:?}");
        let violation = NotPassed::violation(observed, [log_in.number]);
        return Err(violation.for_requirement("auth.pkce.s256"));
    }
    let exchange = exchange(run)?;
    if exchange
        .value("code_verifier")
        .is_some_and(|verifier| verifier.len() >= 43)
    {
        Evidence::from_entries([log_in.number, exchange.number])
    } else {
        exchange.violation("`code_verifier` is missing or too short")
    }
}

fn resource(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let log_in = log_in(run)?;
    let both = [log_in, exchange(run)?];
    for step in &both {
        match step.value("resource") {
            Some(resource) if step.is_at(&resource) => {}
            Some(resource) => {
                let observed = format!("`resource` is `{resource}`");
                let violation = NotPassed::violation(observed, [step.number]);
                return Err(violation.for_requirement("auth.resource.identify"));
            }
            None => {
                let violation = NotPassed::violation("`resource` is missing", [step.number]);
                return Err(violation.for_requirement("auth.resource.both-requests"));
            }
        }
    }
    Evidence::from_entries(both.map(|step| step.number))
}

fn state(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let log_in = log_in(run)?;
    if log_in.value("state").is_some_and(|state| !state.is_empty()) {
        Evidence::from_entries([log_in.number])
    } else {
        log_in.violation("`state` is missing")
    }
}

fn redirect(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let log_in = log_in(run)?;
    let back = log_in.value("redirect_uri").unwrap_or_default();
    // Custom schemes are allowed; plain HTTP to another host is not.
    if is_plain_http_over_network(&back) {
        log_in.violation(format!("the redirect URI is `{back}`"))
    } else {
        Evidence::from_entries([log_in.number])
    }
}

fn token_always(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    let token_request = exchange(run)?.number;
    // Requests in flight during the token request cannot have the token.
    let is_response =
        |(_, entry): &&(usize, TranscriptEntry)| entry.response_to == Some(token_request);
    let issued_at = run.entries.iter().find(is_response);
    let issued_at = issued_at.map_or(token_request, |(number, _)| *number);
    let mut evidence = Vec::new();
    let later = run.http_requests().filter(|(number, head, _)| {
        *number > issued_at
            && head
                .start_line
                .split('?')
                .next()
                .is_some_and(|line| line.ends_with(" /mcp"))
    });
    for (number, head, _) in later {
        let credentials = head.header("authorization");
        if credentials != Some(&format!("Bearer {TOKEN}")) {
            let observed = format!("`Authorization` is {}", credentials.unwrap_or("missing"));
            let violation = NotPassed::violation(observed, [issued_at, number]);
            return Err(match credentials {
                Some(_) => violation,
                None => violation.for_requirement("auth.token.every-request"),
            });
        }
        evidence.push(number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "the client sent no request with its token",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn token_not_in_query(runs: &ScenarioRuns) -> Outcome {
    let (run, _) = first_rejected(runs)?;
    exchange(run)?;
    let step_with_token = steps(run).find(|step| query_of(step.line).contains(TOKEN));
    match step_with_token {
        Some(step) => step.violation("the token is in the URL"),
        None => Evidence::from_entries(steps(run).map(|step| step.number).last()),
    }
}
