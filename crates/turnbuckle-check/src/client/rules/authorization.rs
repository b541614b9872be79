//! From a refusal to a token, as far as a client gets there without a person.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::client::Scene;
use crate::client::query;
use crate::client::scene::guarded::{CLIENTS, LOG_IN, RESOURCE, TOKEN, TOKENS};
use crate::client::take::{Take, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::Entry;

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.auth.resource-metadata", Area::Authorization, &[
        "auth.prm.client",
        "auth.www-authenticate.parse",
        "auth.prm.client-order",
    ])
    .says("A client that is refused looks where the challenge says.")
    .cure("Fetch the URL in `resource_metadata` of `WWW-Authenticate` before any place that you know yourself.")
    .on(On::Http)
    .watch(&[Scene::Guarded], resource_metadata),
    Rule::client("client.auth.server-metadata", Area::Authorization, &[
        "auth.metadata.2025-03-26.client",
        "auth.metadata.2025-03-26.base-url",
        "auth.asm.client-2025-06-18",
        "auth.asm.client-both",
        "auth.asm.order-path",
    ])
    .says("The metadata of the authorization server is looked for at its known places, in their order.")
    .cure("For an issuer with a path, try `/.well-known/oauth-authorization-server` and `/.well-known/openid-configuration` with the path behind them, then `/.well-known/openid-configuration` behind the path.")
    .on(On::Http)
    .watch(&[Scene::Guarded], server_metadata),
    Rule::client("client.auth.application-type", Area::Authorization, &["auth.dcr.application-type"])
        .says("A client that registers says what kind of application it is.")
        .cure("Send `application_type`, `native` or `web`, when you register.")
        .on(On::Http)
        .watch(&[Scene::Guarded], application_type),
    Rule::client("client.auth.registers", Area::Authorization, &["auth.dcr.2025-06-18"])
        .says("A client that the authorization server does not know registers there.")
        .cure("Post your metadata to the `registration_endpoint`, and log in with the `client_id` that it returns.")
        .on(On::Http)
        .watch(&[Scene::Guarded], registers),
    Rule::client("client.auth.pkce", Area::Authorization, &["auth.pkce.required", "auth.pkce.s256"])
        .says("A log-in is bound to whoever began it, by PKCE with S256.")
        .cure("Send `code_challenge` and `code_challenge_method=S256` when the log-in begins, and `code_verifier` for the token.")
        .on(On::Http)
        .watch(&[Scene::Guarded], pkce),
    Rule::client("client.auth.resource", Area::Authorization, &[
        "auth.resource.implement",
        "auth.resource.both-requests",
        "auth.resource.identify",
        "auth.resource.always",
    ])
    .says("The log-in and the request for a token say for which server the token is.")
    .cure("Send `resource` with the URL of the MCP server in both requests.")
    .on(On::Http)
    .watch(&[Scene::Guarded], resource),
    Rule::client("client.auth.state", Area::Authorization, &["auth.redirect.state"])
        .says("A log-in has a state by which its answer is known.")
        .cure("Send a random `state` when the log-in begins, and compare it with the one that comes back.")
        .on(On::Http)
        .watch(&[Scene::Guarded], state),
    Rule::client("client.auth.redirect", Area::Authorization, &["auth.redirect.localhost-or-https"])
        .says("A log-in comes back to this machine, or by https.")
        .cure("Use a redirect URI on localhost, or one with https.")
        .on(On::Http)
        .watch(&[Scene::Guarded], redirect),
    Rule::client("client.auth.token-always", Area::Authorization, &[
        "auth.token.header",
        "auth.token.every-request",
    ])
    .says("Every request has the token, in the header `Authorization`.")
    .cure("Send `Authorization: Bearer` with every POST, GET and DELETE once you have a token.")
    .on(On::Http)
    .watch(&[Scene::Guarded], token_always),
    Rule::client("client.auth.token-not-in-query", Area::Authorization, &["auth.token.not-in-query"])
        .says("No token stands in a URL.")
        .cure("Send tokens in the header `Authorization` only.")
        .on(On::Http)
        .watch(&[Scene::Guarded], token_not_in_query),
];

/// A request of HTTP that the client made on its way to a token.
struct Step<'a> {
    number: usize,
    line: &'a str,
    host: &'a str,
    body: &'a str,
}

fn steps(take: &Take) -> impl Iterator<Item = Step<'_>> {
    take.exchanges().map(|(number, head, entry)| Step {
        number,
        line: &head.line,
        host: head.header("host").unwrap_or_default(),
        body: &entry.text,
    })
}

/// Returns the take, and the first request that was refused.
fn refused(takes: &Takes) -> Result<(&Take, usize), Unmet> {
    let take = takes.of(Scene::Guarded)?;
    let first = steps(take)
        .next()
        .ok_or_else(|| Unmet::not_tested("the client did not connect"))?;
    // Whoever asks for nothing but the endpoint after it was refused has no idea of authorization, which is allowed.
    match steps(take).any(|step| !step.line.ends_with(" /mcp")) {
        true => Ok((take, first.number)),
        false => Err(Unmet::not_applicable("the client makes nothing of 401")),
    }
}

fn step<'a>(take: &'a Take, method: &str, path: &str, why_not: &str) -> Result<Step<'a>, Unmet> {
    let found = steps(take).find(|step| {
        let (verb, rest) = step.line.split_once(' ').unwrap_or_default();
        verb == method && rest.split('?').next() == Some(path)
    });
    found.ok_or_else(|| Unmet::not_tested(why_not))
}

fn log_in(take: &Take) -> Result<Step<'_>, Unmet> {
    step(take, "GET", LOG_IN, "nobody visited the page to log in")
}

fn exchange(take: &Take) -> Result<Step<'_>, Unmet> {
    step(take, "POST", TOKENS, "the client asked for no token")
}

impl Step<'_> {
    /// Returns a parameter, of the query or of the form.
    fn value(&self, name: &str) -> Option<String> {
        match self.body.is_empty() {
            true => query::value(query::of(self.line), name),
            false => query::value(self.body, name),
        }
    }

    /// Says whether a URI names the server: its endpoint, or its origin, which is less exact and allowed.
    fn is_at(&self, uri: &str) -> bool {
        if self.host.is_empty() {
            return uri.ends_with("/mcp");
        }
        let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.strip_prefix(self.host);
        path.is_some_and(|path| ["", "/", "/mcp", "/mcp/"].contains(&path))
    }

    fn broken(&self, what: impl Into<String>) -> Outcome {
        Err(Unmet::broken(what, [self.number]))
    }
}

fn resource_metadata(takes: &Takes) -> Outcome {
    let (take, first) = refused(takes)?;
    let other = steps(take).find(|step| step.line.contains("oauth-protected-resource"));
    let announced = steps(take).find(|step| step.line == format!("GET {RESOURCE}"));
    // Before, it is said that it is looked for there, and not when.
    let ordered = takes.revision >= Revision::V2025_11_25;
    match (announced, other) {
        (Some(right), Some(wrong)) if ordered && wrong.number < right.number => {
            wrong.broken("the client looked elsewhere first")
        }
        (Some(right), _) => Seen::at([first, right.number]),
        (None, _) => {
            let what = format!("nobody fetched `{RESOURCE}`, which the challenge names");
            Err(Unmet::broken(what, [first]))
        }
    }
}

fn server_metadata(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let places: &[&str] = match takes.revision {
        Revision::V2025_03_26 => &["/.well-known/oauth-authorization-server"],
        Revision::V2025_06_18 => &["/.well-known/oauth-authorization-server/as"],
        _ => &[
            "/.well-known/oauth-authorization-server/as",
            "/.well-known/openid-configuration/as",
            "/as/.well-known/openid-configuration",
        ],
    };
    let knows = takes.revision < Revision::V2025_06_18
        || steps(take).any(|step| step.line == format!("GET {RESOURCE}"));
    if !knows {
        return Err(Unmet::not_tested(
            "the client never learnt who gives tokens",
        ));
    }
    let asked = steps(take).filter(|step| {
        places
            .iter()
            .any(|place| step.line == format!("GET {place}"))
    });
    let mut asked: Vec<_> = asked.collect();
    // Whoever has found it may look again later, at one place or at all.
    let found = places.last().map(|place| format!("GET {place}"));
    let found = asked
        .iter()
        .position(|step| found.as_deref() == Some(step.line));
    asked.truncate(found.map_or(asked.len(), |found| found + 1));
    let mut order: Vec<_> = asked
        .iter()
        .map(|step| step.line.trim_start_matches("GET "))
        .collect();
    order.dedup();
    match order == places {
        true => Seen::at(asked.iter().map(|step| step.number)),
        false => {
            let what = format!("asked for {order:?} instead of {places:?}");
            Err(Unmet::broken(what, asked.iter().map(|step| step.number)))
        }
    }
}

fn registers(takes: &Takes) -> Outcome {
    let (take, first) = refused(takes)?;
    if let Ok(registration) = step(take, "POST", CLIENTS, "") {
        return Seen::at([first, registration.number]);
    }
    let log_in = log_in(take)?;
    match log_in.value("client_id") {
        // A metadata document takes the place of a registration.
        Some(id) if id.starts_with("https://") => Seen::at([first, log_in.number]),
        Some(id) => log_in.broken(format!("`{id}` logs in, and was never registered")),
        None => Err(Unmet::not_tested("the log-in names no client")),
    }
}

fn application_type(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let registering = step(take, "POST", CLIENTS, "the client does not register itself")?;
    let client: Value = serde_json::from_str(registering.body).unwrap_or_default();
    match ["native", "web"]
        .iter()
        .any(|kind| client["application_type"] == *kind)
    {
        true => Seen::at([registering.number]),
        false => registering.broken(format!(
            "`application_type` is {}",
            client["application_type"]
        )),
    }
}

fn pkce(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let log_in = log_in(take)?;
    let Some(challenge) = log_in.value("code_challenge") else {
        return log_in.broken("`code_challenge` is missing");
    };
    let method = log_in.value("code_challenge_method");
    if challenge.len() < 43 || method.as_deref() != Some("S256") {
        return log_in.broken(format!("`code_challenge_method` is {method:?}"));
    }
    let exchange = exchange(take)?;
    match exchange
        .value("code_verifier")
        .is_some_and(|verifier| verifier.len() >= 43)
    {
        true => Seen::at([log_in.number, exchange.number]),
        false => exchange.broken("`code_verifier` is missing, or too short"),
    }
}

fn resource(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let log_in = log_in(take)?;
    let both = [log_in, exchange(take)?];
    for step in &both {
        match step.value("resource") {
            Some(resource) if step.is_at(&resource) => {}
            Some(resource) => return step.broken(format!("`resource` is `{resource}`")),
            None => return step.broken("`resource` is missing"),
        }
    }
    Seen::at(both.map(|step| step.number))
}

fn state(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let log_in = log_in(take)?;
    match log_in.value("state").is_some_and(|state| !state.is_empty()) {
        true => Seen::at([log_in.number]),
        false => log_in.broken("`state` is missing"),
    }
}

fn redirect(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let log_in = log_in(take)?;
    let back = log_in.value("redirect_uri").unwrap_or_default();
    let (scheme, rest) = back.split_once("://").unwrap_or_default();
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let local = ["localhost", "127.0.0.1", "[::1]"];
    let is_local = local.iter().any(|name| {
        host == *name
            || host
                .strip_prefix(name)
                .is_some_and(|port| port.starts_with(':'))
    });
    // An application may have a scheme of its own; what is sent in the clear to somebody else is wrong.
    match scheme != "http" || is_local {
        true => Seen::at([log_in.number]),
        false => log_in.broken(format!("the redirect URI is `{back}`")),
    }
}

fn token_always(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    let asked = exchange(take)?.number;
    // What is under way while the token is being given cannot have it.
    let answers = |(_, entry): &&(usize, Entry)| entry.answers == Some(asked);
    let given = take.entries.iter().find(answers);
    let given = given.map_or(asked, |(number, _)| *number);
    let mut seen = Vec::new();
    let later = take.exchanges().filter(|(number, head, _)| {
        *number > given
            && head
                .line
                .split('?')
                .next()
                .is_some_and(|line| line.ends_with(" /mcp"))
    });
    for (number, head, _) in later {
        let credentials = head.header("authorization");
        if credentials != Some(&format!("Bearer {TOKEN}")) {
            let what = format!("`Authorization` is {}", credentials.unwrap_or("missing"));
            return Err(Unmet::broken(what, [given, number]));
        }
        seen.push(number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "the client did not come back with its token",
        )),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn token_not_in_query(takes: &Takes) -> Outcome {
    let (take, _) = refused(takes)?;
    exchange(take)?;
    let leaky = steps(take).find(|step| query::of(step.line).contains(TOKEN));
    match leaky {
        Some(step) => step.broken("the token stands in the URL"),
        None => Seen::at(steps(take).map(|step| step.number).last()),
    }
}
