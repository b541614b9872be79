//! Headers of all HTTP requests.

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns, check_each},
    },
    rule::{Area, Rule, Transports},
};

const NONE: &str = "the client sent no POST";

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.http.accept-both", Area::Http, &["http.post.accept-both"])
        .requirement("Every POST accepts JSON and event streams.")
        .hint("Send `Accept: application/json, text/event-stream` with every POST.")
        .transports(Transports::Http)
        .scenarios(&[], accept_both),
    Rule::client("client.http.content-type", Area::Http, &["http.post.content-type"])
        .requirement("Every POST has the content type `application/json`.")
        .hint("Send `Content-Type: application/json` with every POST.")
        .transports(Transports::Http)
        .scenarios(&[], content_type),
    Rule::client("client.http.get-accept", Area::Http, &["http.get.accept"])
        .requirement("A GET accepts event streams.")
        .hint("Send `Accept: text/event-stream` with GET.")
        .transports(Transports::Http)
        .scenarios(&[], get_accept),
    Rule::client("client.http.version-header", Area::Http, &["http.version-header.client"])
        .requirement("Every request after the handshake has `MCP-Protocol-Version`.")
        .hint("Send `MCP-Protocol-Version` with every POST, GET and DELETE after the response to `initialize`.")
        .transports(Transports::Http)
        .scenarios(&[], version_header),
    Rule::client("client.http.version-header-negotiated", Area::Http, &["http.version-header.negotiated"])
        .requirement("`MCP-Protocol-Version` is the negotiated revision.")
        .hint("Set `MCP-Protocol-Version` to the `protocolVersion` of the server's response.")
        .transports(Transports::Http)
        .scenarios(&[], version_negotiated),
    Rule::client("client.http.version-header-always", Area::Http, &["http.version-header.every-post"])
        .requirement("Every POST has `MCP-Protocol-Version`.")
        .hint("Send `MCP-Protocol-Version` with every POST.")
        .transports(Transports::Http)
        .scenarios(&[], version_always),
    Rule::client("client.http.version-header-matches", Area::Http, &["http.version-header.match-body"])
        .requirement("`MCP-Protocol-Version` equals the version in `_meta`.")
        .hint("Set `MCP-Protocol-Version` to the version in `_meta` of the same request.")
        .transports(Transports::Http)
        .scenarios(&[], version_matches),
    Rule::client("client.http.post", Area::Http, &["http.post.every-message", "http.post.method"])
        .requirement("Every message is sent in a separate POST.")
        .hint("Send each message as the body of a new POST to the endpoint.")
        .transports(Transports::Http)
        .scenarios(&[], post),
];

fn post(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for (number, head, entry) in runs.all().flat_map(ScenarioRun::http_requests) {
        let has_message = entry.json().is_some_and(|body| {
            let first = body.get(0).unwrap_or(&body);
            first.get("jsonrpc").is_some()
        });
        if !has_message {
            continue;
        }
        if !head.start_line.starts_with("POST ") {
            let observed = format!("a message in `{}`", head.start_line);
            return Err(NotPassed::violation(observed, [number]));
        }
        evidence.push(number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(NONE))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn accepts(value: Option<&str>, kind: &str) -> bool {
    let kinds = value.unwrap_or_default().split(',');
    let family = kind.split('/').next().unwrap_or_default();
    kinds
        .map(|mock| {
            mock.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        })
        .any(|mock| mock == kind || mock == "*/*" || mock == format!("{family}/*"))
}

fn quote_or_missing(value: Option<&str>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| format!("`{value}`"))
}

/// Returns the messages that need headers: since 2026-07-28 the specification only requires them for requests.
fn posted(runs: &ScenarioRuns) -> impl Iterator<Item = &ClientMessage> {
    let modern = runs.revision.is_stateless();
    runs.messages()
        .filter(move |message| !modern || message.is_request())
}

fn accept_both(runs: &ScenarioRuns) -> Outcome {
    check_each(posted(runs), NONE, |message| {
        let accept = message.header("accept");
        let both = ["application/json", "text/event-stream"];
        let is_valid = both.into_iter().all(|kind| accepts(accept, kind));
        (!is_valid).then(|| format!("`Accept` is {}", quote_or_missing(accept)))
    })
}

fn content_type(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.messages(), NONE, |message| {
        let kind = message.header("content-type");
        let plain = kind
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        let is_valid = plain.trim().eq_ignore_ascii_case("application/json");
        (!is_valid).then(|| format!("`Content-Type` is {}", quote_or_missing(kind)))
    })
}

fn get_accept(runs: &ScenarioRuns) -> Outcome {
    let exchanges = runs.all().flat_map(ScenarioRun::http_requests);
    let mut evidence = Vec::new();
    for (number, head, _) in
        exchanges.filter(|(_, head, _)| head.start_line.starts_with("GET /mcp"))
    {
        let accept = head.header("accept");
        if !accepts(accept, "text/event-stream") {
            let observed = format!("`Accept` is {}", quote_or_missing(accept));
            return Err(NotPassed::violation(observed, [number]));
        }
        evidence.push(number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("the client opens no GET stream"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Returns all HTTP requests after a handshake, with the value of the header.
fn after_handshakes(runs: &ScenarioRuns) -> Vec<(usize, Option<String>)> {
    let mut all = Vec::new();
    for run in runs
        .all()
        .filter(|run| run.scenario != Scenario::UnknownRevision)
    {
        let initializes: Vec<_> = run.requests_for("initialize").collect();
        let Some(response) = initializes
            .iter()
            .find_map(|initialize| run.response_to(initialize))
        else {
            continue;
        };
        let later = run.http_requests().filter(|(number, head, _)| {
            *number > response.0
                && ["POST /mcp", "GET /mcp", "DELETE /mcp"].contains(&head.start_line.as_str())
                && !initializes
                    .iter()
                    .any(|initialize| initialize.number == *number)
                && !run.is_version_probe(*number)
        });
        all.extend(later.map(|(number, head, _)| {
            (
                number,
                head.header("mcp-protocol-version").map(str::to_owned),
            )
        }));
    }
    all
}

fn version_header(runs: &ScenarioRuns) -> Outcome {
    let all = after_handshakes(runs);
    match all.iter().find(|(_, version)| version.is_none()) {
        Some((number, _)) => Err(NotPassed::violation(
            "`MCP-Protocol-Version` is missing",
            [*number],
        )),
        None => Evidence::from_entries(all.iter().map(|(number, _)| *number).take(3)),
    }
}

fn version_negotiated(runs: &ScenarioRuns) -> Outcome {
    let all: Vec<_> = after_handshakes(runs)
        .into_iter()
        .filter_map(|(number, version)| Some((number, version?)))
        .collect();
    let negotiated = runs.revision.as_str();
    match all.iter().find(|(_, version)| version != negotiated) {
        Some((number, version)) => {
            let observed = format!("`MCP-Protocol-Version` is {version} instead of {negotiated}");
            Err(NotPassed::violation(observed, [*number]))
        }
        None => Evidence::from_entries(all.iter().map(|(number, _)| *number).take(3)),
    }
}

fn version_always(runs: &ScenarioRuns) -> Outcome {
    check_each(posted(runs), NONE, |message| {
        let missing = message.header("mcp-protocol-version").is_none();
        missing.then(|| "`MCP-Protocol-Version` is missing".to_owned())
    })
}

fn version_matches(runs: &ScenarioRuns) -> Outcome {
    let both = |message: &&ClientMessage| {
        message.header("mcp-protocol-version").is_some()
            && message.meta("protocolVersion").is_some()
    };
    let none = "no request has both versions";
    check_each(runs.requests().filter(both), none, |message| {
        let (header, body) = (
            message.header("mcp-protocol-version")?,
            message.meta("protocolVersion")?,
        );
        (body != header).then(|| format!("the header has {header}, the body has {body}"))
    })
}
