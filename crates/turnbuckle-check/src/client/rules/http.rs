//! What goes with every request of HTTP.

use turnbuckle_protocol::revision::Revision;

use crate::client::Scene;
use crate::client::take::{Said, Take, Takes, every};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};

const NONE: &str = "the client posted nothing";

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.http.accept-both", Area::Http, &["http.post.accept-both"])
        .says("Every POST accepts JSON and streams of events.")
        .cure("Send `Accept: application/json, text/event-stream` with every POST.")
        .on(On::Http)
        .watch(&[], accept_both),
    Rule::client("client.http.content-type", Area::Http, &["http.post.content-type"])
        .says("Every POST says that its body is JSON.")
        .cure("Send `Content-Type: application/json` with every POST.")
        .on(On::Http)
        .watch(&[], content_type),
    Rule::client("client.http.get-accept", Area::Http, &["http.get.accept"])
        .says("A GET for a stream accepts streams of events.")
        .cure("Send `Accept: text/event-stream` with GET.")
        .on(On::Http)
        .watch(&[], get_accept),
    Rule::client("client.http.version-header", Area::Http, &["http.version-header.client"])
        .says("Every request after the handshake has the header `MCP-Protocol-Version`.")
        .cure("Send `MCP-Protocol-Version` with every POST, GET and DELETE after `initialize` is answered.")
        .on(On::Http)
        .watch(&[], version_header),
    Rule::client("client.http.version-header-negotiated", Area::Http, &["http.version-header.negotiated"])
        .says("`MCP-Protocol-Version` is the revision that was agreed upon.")
        .cure("Set `MCP-Protocol-Version` to the `protocolVersion` of the server's answer.")
        .on(On::Http)
        .watch(&[], version_negotiated),
    Rule::client("client.http.version-header-always", Area::Http, &["http.version-header.every-post"])
        .says("Every POST has the header `MCP-Protocol-Version`.")
        .cure("Send `MCP-Protocol-Version` with every POST.")
        .on(On::Http)
        .watch(&[], version_always),
    Rule::client("client.http.version-header-matches", Area::Http, &["http.version-header.match-body"])
        .says("`MCP-Protocol-Version` is the revision that the body names.")
        .cure("Set `MCP-Protocol-Version` to the revision in `_meta` of the same request.")
        .on(On::Http)
        .watch(&[], version_matches),
    Rule::client("client.http.post", Area::Http, &["http.post.every-message", "http.post.method"])
        .says("Every message comes in a POST of its own.")
        .cure("Send each request, notification and response as the body of a new POST to the endpoint.")
        .on(On::Http)
        .watch(&[], post),
];

fn post(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for (number, head, entry) in takes.all().flat_map(Take::exchanges) {
        let brings_message = entry.json().is_some_and(|body| {
            let first = body.get(0).unwrap_or(&body);
            first.get("jsonrpc").is_some()
        });
        if !brings_message {
            continue;
        }
        if !head.line.starts_with("POST ") {
            let what = format!("a message in `{}`", head.line);
            return Err(Unmet::broken(what, [number]));
        }
        seen.push(number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(NONE)),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn accepts(value: Option<&str>, kind: &str) -> bool {
    let kinds = value.unwrap_or_default().split(',');
    let family = kind.split('/').next().unwrap_or_default();
    kinds
        .map(|part| {
            part.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        })
        .any(|part| part == kind || part == "*/*" || part == format!("{family}/*"))
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| format!("`{value}`"))
}

/// Returns what has to have headers: since 2026-07-28 nothing is said about notifications.
fn posted(takes: &Takes) -> impl Iterator<Item = &Said> {
    let modern = takes.revision >= Revision::MODERN;
    takes
        .said()
        .filter(move |said| !modern || said.is_request())
}

fn accept_both(takes: &Takes) -> Outcome {
    every(posted(takes), NONE, |said| {
        let accept = said.header("accept");
        let both = ["application/json", "text/event-stream"];
        let right = both.into_iter().all(|kind| accepts(accept, kind));
        (!right).then(|| format!("`Accept` is {}", shown(accept)))
    })
}

fn content_type(takes: &Takes) -> Outcome {
    every(takes.said(), NONE, |said| {
        let kind = said.header("content-type");
        let plain = kind
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        let right = plain.trim().eq_ignore_ascii_case("application/json");
        (!right).then(|| format!("`Content-Type` is {}", shown(kind)))
    })
}

fn get_accept(takes: &Takes) -> Outcome {
    let exchanges = takes.all().flat_map(Take::exchanges);
    let mut seen = Vec::new();
    for (number, head, _) in exchanges.filter(|(_, head, _)| head.line.starts_with("GET /mcp")) {
        let accept = head.header("accept");
        if !accepts(accept, "text/event-stream") {
            let what = format!("`Accept` is {}", shown(accept));
            return Err(Unmet::broken(what, [number]));
        }
        seen.push(number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("the client opens no stream by GET")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

/// Returns all requests of HTTP after a handshake, with the header's value.
fn after_handshakes(takes: &Takes) -> Vec<(usize, Option<String>)> {
    let mut all = Vec::new();
    for take in takes.all().filter(|take| take.scene != Scene::Strange) {
        let hellos: Vec<_> = take.asked("initialize").collect();
        let Some(answered) = hellos.iter().find_map(|hello| take.answer(hello)) else {
            continue;
        };
        let later = take.exchanges().filter(|(number, head, _)| {
            *number > answered.0
                && ["POST /mcp", "GET /mcp", "DELETE /mcp"].contains(&head.line.as_str())
                && !hellos.iter().any(|hello| hello.number == *number)
                && !take.probes(*number)
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

fn version_header(takes: &Takes) -> Outcome {
    let all = after_handshakes(takes);
    match all.iter().find(|(_, version)| version.is_none()) {
        Some((number, _)) => Err(Unmet::broken(
            "`MCP-Protocol-Version` is missing",
            [*number],
        )),
        None => Seen::at(all.iter().map(|(number, _)| *number).take(3)),
    }
}

fn version_negotiated(takes: &Takes) -> Outcome {
    let all: Vec<_> = after_handshakes(takes)
        .into_iter()
        .filter_map(|(number, version)| Some((number, version?)))
        .collect();
    let agreed = takes.revision.as_str();
    match all.iter().find(|(_, version)| version != agreed) {
        Some((number, version)) => {
            let what = format!("`MCP-Protocol-Version` is {version}, but {agreed} was agreed upon");
            Err(Unmet::broken(what, [*number]))
        }
        None => Seen::at(all.iter().map(|(number, _)| *number).take(3)),
    }
}

fn version_always(takes: &Takes) -> Outcome {
    every(posted(takes), NONE, |said| {
        let missing = said.header("mcp-protocol-version").is_none();
        missing.then(|| "`MCP-Protocol-Version` is missing".to_owned())
    })
}

fn version_matches(takes: &Takes) -> Outcome {
    let both = |said: &&Said| {
        said.header("mcp-protocol-version").is_some() && said.meta("protocolVersion").is_some()
    };
    let none = "no request names its revision in both places";
    every(takes.requests().filter(both), none, |said| {
        let (header, body) = (
            said.header("mcp-protocol-version")?,
            said.meta("protocolVersion")?,
        );
        (body != header).then(|| format!("the header says {header}, and the body {body}"))
    })
}
