//! Mutants of client requests: elicitation, sampling and roots.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage, unique_id};

pub(super) fn mutants() -> Vec<Mutant> {
    [capabilities(), round_trips(), elicitation(), sampling()]
        .into_iter()
        .flatten()
        .collect()
}

fn capabilities() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-declared", "ignores the client capabilities")
            .for_requirement("mrtr.result.capability")
            .map_response_to("tools/call", |message| {
                if message["error"]["code"] == -32021 {
                    let requests = json!({ "roots": { "method": "roots/list", "params": {} } });
                    *message = requests_input(&message["id"], &requests);
                }
            }),
        Mutant::new("input.only-declared", "requests roots outside of a call")
            .for_requirement("lifecycle.operation.capabilities-must")
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
        Mutant::new("input.missing-capability", "no `requiredCapabilities`").map_sent(|outgoing| {
            let required = outgoing
                .message
                .pointer_mut("/error/data/requiredCapabilities");
            if let Some(required) = required.filter(|required| required.get("extensions").is_none())
            {
                *required = json!({});
            }
        }),
        Mutant::new("input.missing-capability-status", "HTTP status 200").response(
            |_, outgoing_response| {
                let body = outgoing_response.body.as_deref().unwrap_or_default();
                if String::from_utf8_lossy(body).contains("-32021") {
                    outgoing_response.head.status = ::http::StatusCode::OK;
                }
            },
        ),
    ]
}

fn round_trips() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-where-allowed", "`input_required` for a list").map_response_to(
            "prompts/list",
            |message| {
                *message = requests_input(
                    &message["id"],
                    &json!({ "roots": { "method": "roots/list", "params": {} } }),
                );
            },
        ),
        Mutant::new(
            "input.asks-for-something",
            "neither input requests nor a state",
        )
        .map_response_to("tools/call", |message| {
            if message["result"]["resultType"] == "input_required" {
                message["result"] = json!({ "resultType": "input_required" });
            }
        })
        .for_requirement("mrtr.result.at-least-one"),
        Mutant::new("input.asks-again", "an error for a retry without responses").map_sent(
            |outgoing| {
                if input_responses(outgoing).is_some_and(|responses| *responses == json!({})) {
                    reject(&mut outgoing.message);
                }
            },
        ),
        Mutant::new("input.ignores-surplus", "an error for a surplus response").map_sent(
            |outgoing| {
                if input_responses(outgoing)
                    .is_some_and(|responses| responses.get("check_not_requested").is_some())
                {
                    reject(&mut outgoing.message);
                }
            },
        ),
        Mutant::new("input.malformed-answers", "accepts malformed responses")
            .for_requirement("mrtr.error.validate")
            .map_sent(|outgoing| {
                if input_responses(outgoing).is_some_and(Value::is_string) {
                    outgoing.message = success(&outgoing.message["id"]);
                }
            }),
        Mutant::new("input.tampered-state", "accepts a modified state")
            .for_requirement("mrtr.state.untrusted")
            .map_sent(|outgoing| {
                let request = outgoing
                    .request
                    .as_ref()
                    .map(|request| &request["params"]["requestState"]);
                let state = request.and_then(Value::as_str).unwrap_or_default();
                if outgoing.message.get("error").is_some() && state.len() > 40 {
                    outgoing.message = success(&outgoing.message["id"]);
                }
            }),
        Mutant::new(
            "input.state-of-another-request",
            "accepts the state of another request",
        )
        .map_sent(|outgoing| {
            let request = outgoing.request.as_ref().map(|request| &request["params"]);
            let other = request.is_some_and(|request| {
                let state = request["requestState"].as_str();
                request["name"] != "ask_user" && state.is_some_and(|it| !it.starts_with("check-"))
            });
            if other && outgoing.message.get("error").is_some() {
                outgoing.message = success(&outgoing.message["id"]);
            }
        }),
    ]
}

fn elicitation() -> Vec<Mutant> {
    vec![
        Mutant::new("elicitation.flat-form", "a nested form").map_sent(|outgoing| {
            change_input_request(outgoing, "requestedSchema", |schema| {
                schema["properties"]["name"] = json!({ "type": "object", "properties": {} });
            });
        }),
        Mutant::new("elicitation.flat-form", "a nullable string").map_sent(|outgoing| {
            change_input_request(outgoing, "requestedSchema", |schema| {
                let either = json!([{ "type": "string" }, { "type": "null" }]);
                schema["properties"]["name"] = json!({ "anyOf": either });
            });
        }),
        Mutant::new("elicitation.valid-url", "an invalid URL").map_sent(|outgoing| {
            change_input_request(outgoing, "url", |url| *url = "the page".into());
        }),
        Mutant::new("elicitation.https", "a plain HTTP URL").map_sent(|outgoing| {
            change_input_request(outgoing, "url", |url| *url = "http://example.com/page".into());
        }),
        Mutant::new("elicitation.https", "a host that starts with localhost").map_sent(|outgoing| {
            change_input_request(outgoing, "url", |url| {
                *url = "http://localhost.evil.example/page".into();
            });
        }),
        Mutant::new("elicitation.complete-known", "completes an unknown elicitation")
            .on_ndjson()
            .map_sent(|outgoing| {
                if matches_name(outgoing, "talk") {
                    outgoing.before.push(complete());
                }
            }),
        Mutant::new("elicitation.complete-is-gone", "sends a completion notification")
            .on_ndjson()
            .map_sent(|outgoing| {
                if matches_name(outgoing, "talk") {
                    outgoing.before.push(complete());
                }
            }),
        Mutant::new("elicitation.required-error", "no elicitations in error -32042")
            .for_requirement("elicitation.url.required-error-list")
            .map_sent(|outgoing| {
            if matches_name(outgoing, "talk") {
                let error = json!({ "code": -32042, "message": "visit a page", "data": { "elicitations": [] } });
                outgoing.message = json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "error": error });
            }
        }),
    ]
}

fn sampling() -> Vec<Mutant> {
    vec![
        with_messages(
            "a tool use without a result",
            "sampling.tool-result.balance",
            || json!([{ "role": "assistant", "content": tool_use() }]),
        ),
        with_messages(
            "a result for another tool use",
            "sampling.tool-result.match",
            || {
                let result = json!({ "type": "tool_result", "toolUseId": "2", "content": [] });
                json!([{ "role": "assistant", "content": tool_use() }, { "role": "user", "content": result }])
            },
        ),
        with_messages("a result next to text", "sampling.tool-result.only", || {
            let result = json!({ "type": "tool_result", "toolUseId": "1", "content": [] });
            let text = json!({ "type": "text", "text": "Here it is." });
            json!([{ "role": "assistant", "content": tool_use() }, { "role": "user", "content": [result, text] }])
        }),
        Mutant::new("sampling.context", "requests the context of all servers")
            .for_requirement("sampling.context.capability")
            .map_sent(|outgoing| {
                each_input_request(outgoing, |params| {
                    if params.get("messages").is_some() {
                        params["includeContext"] = "allServers".into();
                    }
                });
            }),
    ]
}

/// Returns a server that sends these messages in sampling requests.
fn with_messages(
    name: &'static str,
    requirement: &'static str,
    sent: impl Fn() -> Value + Send + Sync + 'static,
) -> Mutant {
    Mutant::new("sampling.tool-results", name)
        .for_requirement(requirement)
        .map_sent(move |outgoing| {
            change_input_request(outgoing, "messages", |messages| *messages = sent());
        })
}

fn tool_use() -> Value {
    json!({ "type": "tool_use", "id": "1", "name": "look", "input": {} })
}

/// Changes a member of each input request that has it.
fn change_input_request(outgoing: &mut OutgoingMessage, field: &str, change: impl Fn(&mut Value)) {
    each_input_request(outgoing, |params| {
        if let Some(value) = params.get_mut(field) {
            change(value);
        }
    });
}

fn each_input_request(outgoing: &mut OutgoingMessage, change: impl Fn(&mut Value)) {
    let requests = outgoing.message.pointer_mut("/result/inputRequests");
    let requests = requests.and_then(Value::as_object_mut).into_iter();
    for request in requests.flat_map(|requests| requests.values_mut()) {
        if let Some(params) = request.get_mut("params") {
            change(params);
        }
    }
}

/// Returns the input responses of a call.
fn input_responses(outgoing: &OutgoingMessage) -> Option<&Value> {
    let request = outgoing.request.as_ref()?;
    let called = request["method"] == "tools/call";
    request["params"].get("inputResponses").filter(|_| called)
}

/// Returns whether a message responds to a call of this tool.
fn matches_name(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| request["params"]["name"] == tool)
}

fn complete() -> Value {
    let params = json!({ "elicitationId": "not-requested" });
    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params })
}

fn requests_input(id: &Value, requests: &Value) -> Value {
    let result = json!({ "resultType": "input_required", "inputRequests": requests });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn success(id: &Value) -> Value {
    let result = json!({ "resultType": "complete", "content": [] });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn reject(message: &mut Value) {
    let error = json!({ "code": -32602, "message": "rejected" });
    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
}

#[tokio::test(start_paused = true)]
async fn each_capability_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(capabilities()).await;
}

#[tokio::test(start_paused = true)]
async fn each_round_trip_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(round_trips()).await;
}

#[tokio::test(start_paused = true)]
async fn each_elicitation_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(elicitation()).await;
}

#[tokio::test(start_paused = true)]
async fn each_sampling_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(sampling()).await;
}
