//! What a server asks its client: the user, the model, the roots: not quite right.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage, unique_id};

pub(super) fn mutants() -> Vec<Mutant> {
    [declared(), rounds(), elicitation(), sampling()]
        .into_iter()
        .flatten()
        .collect()
}

fn declared() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-declared", "asks whoever is there").map_response_to(
            "tools/call",
            |message| {
                if message["error"]["code"] == -32021 {
                    let requests = json!({ "roots": { "method": "roots/list", "params": {} } });
                    *message = requests_input(&message["id"], &requests);
                }
            },
        ),
        Mutant::new(
            "input.only-declared",
            "asks for roots by a request of its own",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_06_18)
        .map_sent(|outgoing| {
            if outgoing.message["result"]["isError"] == true {
                let request =
                    json!({ "jsonrpc": "2.0", "id": unique_id(), "method": "roots/list" });
                outgoing.before.push(request);
            }
        }),
        Mutant::new("input.missing-capability", "an internal error").map_response_to(
            "tools/call",
            |message| {
                if message["error"]["code"] == -32021 {
                    message["error"]["code"] = (-32603).into();
                }
            },
        ),
        Mutant::new("input.missing-capability", "does not say what is missing").map_sent(
            |outgoing| {
                let required = outgoing
                    .message
                    .pointer_mut("/error/data/requiredCapabilities");
                if let Some(required) =
                    required.filter(|required| required.get("extensions").is_none())
                {
                    *required = json!({});
                }
            },
        ),
        Mutant::new("input.missing-capability-status", "answers with 200").response(
            |_, outgoing_response| {
                let body = outgoing_response.body.as_deref().unwrap_or_default();
                if String::from_utf8_lossy(body).contains("-32021") {
                    outgoing_response.head.status = ::http::StatusCode::OK;
                }
            },
        ),
    ]
}

fn rounds() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-where-allowed", "asks before it lists").map_response_to(
            "prompts/list",
            |message| {
                *message = requests_input(
                    &message["id"],
                    &json!({ "roots": { "method": "roots/list", "params": {} } }),
                );
            },
        ),
        Mutant::new("input.asks-for-something", "neither questions nor a state").map_response_to(
            "tools/call",
            |message| {
                if message["result"]["resultType"] == "input_required" {
                    message["result"] = json!({ "resultType": "input_required" });
                }
            },
        ),
        Mutant::new(
            "input.asks-again",
            "an error for who comes back with nothing",
        )
        .map_sent(|outgoing| {
            if brings(outgoing).is_some_and(|responses| *responses == json!({})) {
                refuse(&mut outgoing.message);
            }
        }),
        Mutant::new("input.ignores-surplus", "an error for one answer too many").map_sent(
            |outgoing| {
                if brings(outgoing)
                    .is_some_and(|responses| responses.get("check_nobody_asked").is_some())
                {
                    refuse(&mut outgoing.message);
                }
            },
        ),
        Mutant::new("input.malformed-answers", "takes any answer").map_sent(|outgoing| {
            if brings(outgoing).is_some_and(Value::is_string) {
                outgoing.message = done(&outgoing.message["id"]);
            }
        }),
        Mutant::new("input.tampered-state", "believes what it is told").map_sent(|outgoing| {
            let asked = outgoing
                .request
                .as_ref()
                .map(|asked| &asked["params"]["requestState"]);
            let state = asked.and_then(Value::as_str).unwrap_or_default();
            if outgoing.message.get("error").is_some() && state.len() > 40 {
                outgoing.message = done(&outgoing.message["id"]);
            }
        }),
        Mutant::new(
            "input.state-of-another-request",
            "does not care whose state it is",
        )
        .map_sent(|outgoing| {
            let asked = outgoing.request.as_ref().map(|asked| &asked["params"]);
            let other = asked.is_some_and(|asked| {
                let state = asked["requestState"].as_str();
                asked["name"] != "ask_user" && state.is_some_and(|it| !it.starts_with("check-"))
            });
            if other && outgoing.message.get("error").is_some() {
                outgoing.message = done(&outgoing.message["id"]);
            }
        }),
    ]
}

fn elicitation() -> Vec<Mutant> {
    vec![
        Mutant::new("elicitation.flat-form", "a form within a form").map_sent(|outgoing| {
            change_question(outgoing, "requestedSchema", |schema| {
                schema["properties"]["name"] = json!({ "type": "object", "properties": {} });
            });
        }),
        Mutant::new("elicitation.flat-form", "a text or nothing").map_sent(|outgoing| {
            change_question(outgoing, "requestedSchema", |schema| {
                let either = json!([{ "type": "string" }, { "type": "null" }]);
                schema["properties"]["name"] = json!({ "anyOf": either });
            });
        }),
        Mutant::new("elicitation.valid-url", "no URL at all").map_sent(|outgoing| {
            change_question(outgoing, "url", |url| *url = "the page".into());
        }),
        Mutant::new("elicitation.https", "in the open").map_sent(|outgoing| {
            change_question(outgoing, "url", |url| *url = "http://example.com/page".into());
        }),
        Mutant::new("elicitation.complete-known", "completes what nobody has asked")
            .on_ndjson()
            .map_sent(|outgoing| {
                if matches_name(outgoing, "talk") {
                    outgoing.before.push(complete());
                }
            }),
        Mutant::new("elicitation.complete-is-gone", "tells that the user is done")
            .on_ndjson()
            .map_sent(|outgoing| {
                if matches_name(outgoing, "talk") {
                    outgoing.before.push(complete());
                }
            }),
        Mutant::new("elicitation.required-error", "lists no pages").map_sent(|outgoing| {
            if matches_name(outgoing, "talk") {
                let error = json!({ "code": -32042, "message": "visit a page", "data": { "elicitations": [] } });
                outgoing.message = json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "error": error });
            }
        }),
    ]
}

fn sampling() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "sampling.tool-results",
            "a tool was used, and nothing came of it",
        )
        .map_sent(|outgoing| {
            change_question(outgoing, "messages", |messages| {
                let uses = json!({ "type": "tool_use", "id": "1", "name": "look", "input": {} });
                *messages = json!([{ "role": "assistant", "content": uses }]);
            });
        }),
        Mutant::new("sampling.context", "wants to know everything").map_sent(|outgoing| {
            each_question(outgoing, |params| {
                if params.get("messages").is_some() {
                    params["includeContext"] = "allServers".into();
                }
            });
        }),
    ]
}

/// Changes a field of each question that has it.
fn change_question(outgoing: &mut OutgoingMessage, field: &str, change: impl Fn(&mut Value)) {
    each_question(outgoing, |params| {
        if let Some(value) = params.get_mut(field) {
            change(value);
        }
    });
}

fn each_question(outgoing: &mut OutgoingMessage, change: impl Fn(&mut Value)) {
    let requests = outgoing.message.pointer_mut("/result/inputRequests");
    let requests = requests.and_then(Value::as_object_mut).into_iter();
    for request in requests.flat_map(|requests| requests.values_mut()) {
        if let Some(params) = request.get_mut("params") {
            change(params);
        }
    }
}

/// Returns the answers that a call has brought.
fn brings(outgoing: &OutgoingMessage) -> Option<&Value> {
    let asked = outgoing.request.as_ref()?;
    let called = asked["method"] == "tools/call";
    asked["params"].get("inputResponses").filter(|_| called)
}

/// Says whether a message answers a call of this tool.
fn matches_name(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let asked = outgoing.request.as_ref();
    asked.is_some_and(|asked| asked["params"]["name"] == tool)
}

fn complete() -> Value {
    let params = json!({ "elicitationId": "nobody-asked" });
    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params })
}

fn requests_input(id: &Value, requests: &Value) -> Value {
    let result = json!({ "resultType": "input_required", "inputRequests": requests });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn done(id: &Value) -> Value {
    let result = json!({ "resultType": "complete", "content": [] });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn refuse(message: &mut Value) {
    let error = json!({ "code": -32602, "message": "not like this" });
    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
}

#[tokio::test(start_paused = true)]
async fn declared_each_trips_its_rule() {
    super::assert_each_trips_its_rule(declared()).await;
}

#[tokio::test(start_paused = true)]
async fn rounds_each_trips_its_rule() {
    super::assert_each_trips_its_rule(rounds()).await;
}

#[tokio::test(start_paused = true)]
async fn elicitation_each_trips_its_rule() {
    super::assert_each_trips_its_rule(elicitation()).await;
}

#[tokio::test(start_paused = true)]
async fn sampling_each_trips_its_rule() {
    super::assert_each_trips_its_rule(sampling()).await;
}
