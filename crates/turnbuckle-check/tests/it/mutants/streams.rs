//! Event stream mutants.

use std::sync::{Arc, Mutex};

use http::HeaderValue;
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

const LAST: &str = "last-event-id";

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("streams.message-events", "another event type").events(|_, events| {
            if events.contains("\"jsonrpc\"") {
                events.insert_str(0, "event: mcp\n");
            }
        }),
        Mutant::new(
            "streams.own-messages-only",
            "change notifications on a request stream",
        )
        .map_sent(|outgoing| {
            if is_progress(outgoing) {
                let method = "notifications/tools/list_changed";
                outgoing
                    .before
                    .push(json!({ "jsonrpc": "2.0", "method": method }));
            }
        }),
        Mutant::new("streams.not-buffered", "no `X-Accel-Buffering`").response(
            |_, outgoing_response| {
                outgoing_response.head.headers.remove("x-accel-buffering");
            },
        ),
        Mutant::new("streams.event-ids-unique", "event ids count per stream").events(
            |request, events| {
                if !request.headers.contains_key(LAST) && events.starts_with("id: ") {
                    let rest = events.find('\n').unwrap();
                    events.replace_range(..rest, "id: first");
                }
            },
        ),
        Mutant::new(
            "streams.get-without-answers",
            "repeats responses on the GET stream",
        )
        .events(|request, events| {
            if request.method == "GET" && !request.headers.contains_key(LAST) {
                events.push_str("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
            }
        }),
        Mutant::new("streams.each-message-once", "logs on all streams")
            .copies("notifications/message"),
        Mutant::new("streams.primed", "starts with a message").events(|_, events| {
            if events.ends_with("data: \n\n") {
                events.clear();
            }
        }),
        Mutant::new("streams.answer-comes", "closes early")
            .for_requirement("http.sse.no-early-close")
            .in_revision(Revision::V2025_06_18)
            .events(|request, events| {
                if request.method == "POST" && !events.contains("\"method\"") {
                    events.clear();
                }
                *events = without_ids(events);
            }),
        Mutant::new("streams.end-after-answer", "never ends a stream").lingers(),
        replays_another(),
        Mutant::new("streams.survive-disconnection", "cancels on disconnect").response(
            |request, outgoing_response| {
                if request.headers.contains_key(LAST) && outgoing_response.head.status == 200 {
                    outgoing_response.body = Some(Vec::new());
                }
            },
        ),
    ]
}

/// Sends the last response on any resumed stream.
fn replays_another() -> Mutant {
    let called: Arc<Mutex<Value>> = Arc::default();
    let known = called.clone();
    Mutant::new("streams.replay-own", "replays another stream")
        .request(move |request| {
            let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            if message["method"] == "tools/call" {
                *known.lock().unwrap() = message["id"].clone();
            }
        })
        .response(move |request, outgoing_response| {
            if request.headers.contains_key(LAST) {
                outgoing_response.head.status = http::StatusCode::OK;
                let kind = HeaderValue::from_static("text/event-stream");
                outgoing_response.head.headers.insert("content-type", kind);
                let id = called.lock().unwrap().clone();
                let response = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } });
                outgoing_response.body = Some(format!("data: {response}\n\n").into_bytes());
            }
        })
}

fn is_progress(outgoing: &OutgoingMessage) -> bool {
    outgoing.message["method"] == "notifications/progress"
}

fn without_ids(events: &str) -> String {
    let lines = events.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("id: ")).collect()
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
