//! HTTP mutants.

use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::base::{error, is_response_to};
use crate::mutant::{Mutant, OutgoingMessage};

const VERSION: &str = "mcp-protocol-version";

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("http.answer-kind", "plain text responses").response(|_, outgoing_response| {
            let kind = outgoing_response.head.headers.get_mut("content-type");
            if let Some(kind) = kind.filter(|kind| *kind == "application/json") {
                *kind = HeaderValue::from_static("text/plain");
            }
        }),
        Mutant::new("http.notification-202", "200 for notifications")
            .for_requirement("http.post.202-modern")
            .response(|_, outgoing_response| replace(&mut outgoing_response.head.status, 202, 200)),
        Mutant::new("http.get", "204 for GET")
            .for_requirement("http.get.response")
            .response(|request, outgoing_response| {
                if request.method == "GET" && outgoing_response.head.status == 200 {
                    outgoing_response.head.status = StatusCode::NO_CONTENT;
                    outgoing_response.body = Some(Vec::new());
                }
            }),
        Mutant::new("http.unknown-method-404", "200 for unknown methods")
            .response(|_, outgoing_response| replace(&mut outgoing_response.head.status, 404, 200)),
        Mutant::new("http.version-header-400", "accepts any version").request(|request| {
            let version = request.headers().get(VERSION);
            let known = |value: &HeaderValue| {
                value
                    .to_str()
                    .is_ok_and(|text| text.parse::<Revision>().is_ok())
            };
            if !version.is_some_and(known) {
                request.headers_mut().remove(VERSION);
            }
        }),
        Mutant::new("http.version-header-default", "requires the version header").request(
            |request| {
                if !request.headers().contains_key(VERSION) && method(request) == "ping" {
                    set(request, VERSION, "none");
                }
            },
        ),
        Mutant::new("http.modern-only-get", "404 for GET and DELETE")
            .map_sent(modern_only)
            .response(|_, outgoing_response| replace(&mut outgoing_response.head.status, 405, 404)),
        Mutant::new("http.modern-only-session", "a session id in the modern era")
            .for_requirement("http.modern-only.session-ignore")
            .map_sent(modern_only)
            .response(|_, outgoing_response| {
                let id = HeaderValue::from_static("one");
                outgoing_response.head.headers.insert("mcp-session-id", id);
            }),
        Mutant::new("http.modern-only-session", "rejects a session id")
            .for_requirement("http.modern-only.session-ignore")
            .map_sent(modern_only)
            .request(|request| reject_with(request, "mcp-session-id")),
        Mutant::new("http.modern-only-session", "rejects an event id")
            .for_requirement("http.modern-only.last-event-id")
            .map_sent(modern_only)
            .request(|request| reject_with(request, "last-event-id")),
        Mutant::new(
            "http.accept-in-any-order",
            "accepts one exact `Accept` only",
        )
        .request(|request| {
            if request
                .headers()
                .get("accept")
                .is_some_and(|kinds| kinds.as_bytes().starts_with(b"text/event-stream;"))
            {
                set(request, "accept", "nothing");
            }
        }),
        Mutant::new(
            "http.content-type-with-charset",
            "accepts one exact `Content-Type` only",
        )
        .request(|request| {
            if request
                .headers()
                .get("content-type")
                .is_some_and(|kind| kind != "application/json")
            {
                set(request, "content-type", "text/plain");
            }
        }),
        Mutant::new("http.content-type-checked", "ignores `Content-Type`")
            .request(|request| set(request, "content-type", "application/json")),
    ]
}

/// Rejects the handshake.
/// Makes the server reject a request with this header.
fn reject_with(request: &mut Request<Vec<u8>>, header: &str) {
    if request.headers().contains_key(header) {
        set(request, VERSION, "none");
    }
}

fn modern_only(outgoing: &mut OutgoingMessage) {
    if is_response_to(outgoing, "server/discover") {
        outgoing.message["result"]["supportedVersions"] = json!(["2026-07-28"]);
    }
    if is_response_to(outgoing, "initialize") {
        outgoing.message = error(&outgoing.message["id"], -32601);
    }
}

fn replace(status: &mut StatusCode, failures: u16, right: u16) {
    if *status == failures {
        *status = StatusCode::from_u16(right).unwrap();
    }
}

/// Sets a header of a request.
pub(super) fn set(request: &mut Request<Vec<u8>>, name: &'static str, value: &str) {
    let value = HeaderValue::from_str(value).unwrap();
    request.headers_mut().insert(name, value);
}

/// Returns the method of the message in a request.
pub(super) fn method(request: &Request<Vec<u8>>) -> String {
    let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    message["method"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
