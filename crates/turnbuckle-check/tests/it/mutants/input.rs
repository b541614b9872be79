//! What a server asks its client: the user, the model, the roots: not quite right.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, Saying, fresh_id};

pub(super) fn mutants() -> Vec<Mutant> {
    [declared(), rounds(), elicitation(), sampling()]
        .into_iter()
        .flatten()
        .collect()
}

fn declared() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-declared", "asks whoever is there").answers(
            "tools/call",
            |message| {
                if message["error"]["code"] == -32021 {
                    let requests = json!({ "roots": { "method": "roots/list", "params": {} } });
                    *message = asking(&message["id"], &requests);
                }
            },
        ),
        Mutant::new(
            "input.only-declared",
            "asks for roots by a request of its own",
        )
        .on_lines()
        .in_revision(Revision::V2025_06_18)
        .says(|saying| {
            if saying.message["result"]["isError"] == true {
                let request = json!({ "jsonrpc": "2.0", "id": fresh_id(), "method": "roots/list" });
                saying.before.push(request);
            }
        }),
        Mutant::new("input.missing-capability", "an internal error").answers(
            "tools/call",
            |message| {
                if message["error"]["code"] == -32021 {
                    message["error"]["code"] = (-32603).into();
                }
            },
        ),
        Mutant::new("input.missing-capability", "does not say what is missing").says(|saying| {
            let required = saying
                .message
                .pointer_mut("/error/data/requiredCapabilities");
            if let Some(required) = required.filter(|required| required.get("extensions").is_none())
            {
                *required = json!({});
            }
        }),
        Mutant::new("input.missing-capability-status", "answers with 200").response(
            |_, responding| {
                let body = responding.body.as_deref().unwrap_or_default();
                if String::from_utf8_lossy(body).contains("-32021") {
                    responding.head.status = ::http::StatusCode::OK;
                }
            },
        ),
    ]
}

fn rounds() -> Vec<Mutant> {
    vec![
        Mutant::new("input.only-where-allowed", "asks before it lists").answers(
            "prompts/list",
            |message| {
                *message = asking(
                    &message["id"],
                    &json!({ "roots": { "method": "roots/list", "params": {} } }),
                );
            },
        ),
        Mutant::new("input.asks-for-something", "neither questions nor a state").answers(
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
        .says(|saying| {
            if brings(saying).is_some_and(|responses| *responses == json!({})) {
                refuse(&mut saying.message);
            }
        }),
        Mutant::new("input.ignores-surplus", "an error for one answer too many").says(|saying| {
            if brings(saying).is_some_and(|responses| responses.get("check_nobody_asked").is_some())
            {
                refuse(&mut saying.message);
            }
        }),
        Mutant::new("input.malformed-answers", "takes any answer").says(|saying| {
            if brings(saying).is_some_and(Value::is_string) {
                saying.message = done(&saying.message["id"]);
            }
        }),
        Mutant::new("input.tampered-state", "believes what it is told").says(|saying| {
            let asked = saying
                .asked
                .as_ref()
                .map(|asked| &asked["params"]["requestState"]);
            let state = asked.and_then(Value::as_str).unwrap_or_default();
            if saying.message.get("error").is_some() && state.len() > 40 {
                saying.message = done(&saying.message["id"]);
            }
        }),
        Mutant::new(
            "input.state-of-another-request",
            "does not care whose state it is",
        )
        .says(|saying| {
            let asked = saying.asked.as_ref().map(|asked| &asked["params"]);
            let other = asked.is_some_and(|asked| {
                let state = asked["requestState"].as_str();
                asked["name"] != "ask_user" && state.is_some_and(|it| !it.starts_with("check-"))
            });
            if other && saying.message.get("error").is_some() {
                saying.message = done(&saying.message["id"]);
            }
        }),
    ]
}

fn elicitation() -> Vec<Mutant> {
    vec![
        Mutant::new("elicitation.flat-form", "a form within a form").says(|saying| {
            change_question(saying, "requestedSchema", |schema| {
                schema["properties"]["name"] = json!({ "type": "object", "properties": {} });
            });
        }),
        Mutant::new("elicitation.flat-form", "a text or nothing").says(|saying| {
            change_question(saying, "requestedSchema", |schema| {
                let either = json!([{ "type": "string" }, { "type": "null" }]);
                schema["properties"]["name"] = json!({ "anyOf": either });
            });
        }),
        Mutant::new("elicitation.valid-url", "no URL at all").says(|saying| {
            change_question(saying, "url", |url| *url = "the page".into());
        }),
        Mutant::new("elicitation.https", "in the open").says(|saying| {
            change_question(saying, "url", |url| *url = "http://example.com/page".into());
        }),
        Mutant::new("elicitation.complete-known", "completes what nobody has asked")
            .on_lines()
            .says(|saying| {
                if is_called(saying, "talk") {
                    saying.before.push(complete());
                }
            }),
        Mutant::new("elicitation.complete-is-gone", "tells that the user is done")
            .on_lines()
            .says(|saying| {
                if is_called(saying, "talk") {
                    saying.before.push(complete());
                }
            }),
        Mutant::new("elicitation.required-error", "lists no pages").says(|saying| {
            if is_called(saying, "talk") {
                let error = json!({ "code": -32042, "message": "visit a page", "data": { "elicitations": [] } });
                saying.message = json!({ "jsonrpc": "2.0", "id": saying.message["id"], "error": error });
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
        .says(|saying| {
            change_question(saying, "messages", |messages| {
                let uses = json!({ "type": "tool_use", "id": "1", "name": "look", "input": {} });
                *messages = json!([{ "role": "assistant", "content": uses }]);
            });
        }),
        Mutant::new("sampling.context", "wants to know everything").says(|saying| {
            each_question(saying, |params| {
                if params.get("messages").is_some() {
                    params["includeContext"] = "allServers".into();
                }
            });
        }),
    ]
}

/// Changes a field of each question that has it.
fn change_question(saying: &mut Saying, field: &str, change: impl Fn(&mut Value)) {
    each_question(saying, |params| {
        if let Some(value) = params.get_mut(field) {
            change(value);
        }
    });
}

fn each_question(saying: &mut Saying, change: impl Fn(&mut Value)) {
    let requests = saying.message.pointer_mut("/result/inputRequests");
    let requests = requests.and_then(Value::as_object_mut).into_iter();
    for request in requests.flat_map(|requests| requests.values_mut()) {
        if let Some(params) = request.get_mut("params") {
            change(params);
        }
    }
}

/// Returns the answers that a call has brought.
fn brings(saying: &Saying) -> Option<&Value> {
    let asked = saying.asked.as_ref()?;
    let called = asked["method"] == "tools/call";
    asked["params"].get("inputResponses").filter(|_| called)
}

/// Says whether a message answers a call of this tool.
fn is_called(saying: &Saying, tool: &str) -> bool {
    let asked = saying.asked.as_ref();
    asked.is_some_and(|asked| asked["params"]["name"] == tool)
}

fn complete() -> Value {
    let params = json!({ "elicitationId": "nobody-asked" });
    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params })
}

fn asking(id: &Value, requests: &Value) -> Value {
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
