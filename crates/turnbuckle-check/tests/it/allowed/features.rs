//! Features: tools, resources, prompts, client requests and tasks.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};
use turnbuckle_check::report::{Report, RuleStatus};
use turnbuckle_protocol::revision::Revision;

use super::wire::assert_allowed;
use crate::{
    mutant::{Mutant, OutgoingMessage},
    mutants::tasks::numbered,
};

/// Returns correct servers, each with a rule that could wrongly fail.
fn allowed() -> Vec<Mutant> {
    vec![
        Mutant::new("prompts.missing-arguments", "requests missing arguments").map_sent(|outgoing| {
            let is_review = is_response_to(outgoing, "prompts/get")["name"] == "review";
            if is_review && outgoing.message["error"]["code"] == -32602 {
                requests_input(outgoing);
            }
        }),
        Mutant::new("resources.not-found", "requests input before reading").map_sent(|outgoing| {
            let uri = is_response_to(outgoing, "resources/read")["uri"].clone();
            if is_unknown_uri(&uri) {
                requests_input(outgoing);
            }
        }),
        Mutant::new("resources.not-found", "has a template that matches every URI").map_sent(|outgoing| {
            let uri = is_response_to(outgoing, "resources/read")["uri"].clone();
            if is_unknown_uri(&uri) {
                let contents = json!([{ "uri": uri, "mimeType": "text/plain", "text": "Here." }]);
                respond(outgoing, json!({
                    "contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                }));
            }
            if let Some(templates) = outgoing.message.pointer_mut("/result/resourceTemplates/0") {
                templates["uriTemplate"] = "{+address}".into();
            }
        }),
        Mutant::new(
            "resources.listed-can-be-read",
            "a resource is removed during the check",
        )
        .map_sent(removed_when_read()),
        Mutant::new("elicitation.complete-known", "completes an elicitation of an error")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/call")["name"] == "panel" {
                    let page = json!({
                        "mode": "url", "elicitationId": "page-1", "url": "https://example.com/", "message": "Look.",
                    });
                    reject(outgoing, -32042);
                    outgoing.message["error"]["data"] = json!({ "elicitations": [page] });
                    let params = json!({ "elicitationId": "page-1" });
                    outgoing.after.push(json!({
                        "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params,
                    }));
                }
            }),
        Mutant::new("tasks.messages-related", "requests roots at the start of a session")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["result"]["task"].is_object() {
                    let id = crate::mutant::unique_id();
                    outgoing.after.push(json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" }));
                }
            }),
        numbered().protected(),
        Mutant::new("subscriptions.subscribe", "one resource that never changes")
            .on_ndjson()
            .map_received(|incoming| {
                let subscribes = incoming.message["method"] == "resources/subscribe";
                if subscribes && incoming.message["params"]["uri"] == "good://greeting" {
                    let error = json!({ "code": -32602, "message": "It never changes." });
                    let id = incoming.message["id"].clone();
                    incoming.response = Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("input.state-of-another-request", "a state without effect")
            .map_sent(|outgoing| {
                if let Some(state) = outgoing.message.pointer_mut("/result/requestState") {
                    *state = "nothing".into();
                }
            })
            .map_received(|incoming| {
                if let Some(params) = incoming
                    .message
                    .pointer_mut("/params")
                    .and_then(Value::as_object_mut) {
                    params.remove("requestState");
                }
            }),
        Mutant::new("input.asks-again", "accepts each state once").map_sent(accepted_once()),
        Mutant::new("tools.wrong-arguments-as-result", "only arguments with param headers").map_sent(|outgoing| {
            let tools = outgoing.message.pointer_mut("/result/tools");
            if let Some(tools) = tools.and_then(Value::as_array_mut) {
                tools.retain(|tool| tool["name"] != "add");
            }
            // The server rejects a header that differs from its argument before it calls the tool.
            let call = is_response_to(outgoing, "tools/call");
            if call["name"] == "forecast" && call["arguments"]["region"].is_object() {
                reject(outgoing, -32020);
            }
        }),
        Mutant::new("tools.schemas-valid", "patterns with lookahead").map_response_to("tools/list", |message| {
            let tools = message.pointer_mut("/result/tools");
            for tool in tools.and_then(Value::as_array_mut).into_iter().flatten() {
                if tool["name"] == "panel" {
                    let any = json!({ "^(?!x-)": { "type": "string" } });
                    tool["inputSchema"]["patternProperties"] = any;
                }
            }
        }),
    ]
}

/// Returns servers with a violation, each with a rule about something else.
fn unrelated_violations() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.names-case", "accepts every tool name").map_sent(|outgoing| {
            let unknown = outgoing.message["error"]["code"] == -32602;
            if unknown && is_response_to(outgoing, "tools/call").is_object() {
                let text = json!({ "type": "text", "text": "Unknown tool." });
                respond(
                    outgoing,
                    json!({ "content": [text], "resultType": "complete" }),
                );
            }
        }),
        Mutant::new("prompts.capability", "no response to an unknown method")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.message["method"] == "prompts/list" {
                    incoming.message = Value::Null;
                }
            })
            .map_response_to("server/discover", |message| {
                let capabilities = message.pointer_mut("/result/capabilities");
                if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
                    capabilities.remove("prompts");
                }
            }),
        Mutant::new(
            "cancellation.strays-ignored",
            "rejects unreadable notifications",
        )
        .in_revision(Revision::V2025_06_18)
        .map_received(|incoming| {
            let stray = incoming.message["params"]["requestId"].is_null();
            if stray && incoming.message["method"] == "notifications/cancelled" {
                let error = json!({ "code": -32602, "message": "no `requestId`" });
                incoming.response = Some(json!({ "jsonrpc": "2.0", "error": error }));
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn allowed_variants_pass() {
    let mut failures = Vec::new();
    for mutant in allowed() {
        let report = mutant.check().await;
        failures.extend(unexpected_failures(&mutant, &report, |_| true));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test(start_paused = true)]
async fn unrelated_violations_do_not_fail_a_rule() {
    let mut failures = Vec::new();
    for mutant in unrelated_violations() {
        let report = mutant.check().await;
        failures.extend(unexpected_failures(&mutant, &report, |id| {
            id == mutant.violates
        }));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn unexpected_failures(
    mutant: &Mutant,
    report: &Report,
    rules: impl Fn(&str) -> bool,
) -> Vec<String> {
    let failures = report
        .results()
        .filter(|(_, result)| match result.status() {
            RuleStatus::Fail | RuleStatus::Warn => rules(result.rule.id),
            RuleStatus::Advice => result.rule.id == mutant.violates,
            _ => false,
        });
    failures
        .map(|(_, result)| {
            let (id, outcome) = (result.rule.id, &result.outcome);
            format!("“{}” fails {id}: {outcome:#?}", mutant.name)
        })
        .collect()
}

/// Returns the parameters of the request that a message responds to, if it has this method.
fn is_response_to(outgoing: &OutgoingMessage, method: &str) -> Value {
    let request = outgoing.request.as_ref();
    let request = request.filter(|request| request["method"] == method);
    request
        .map(|request| request["params"].clone())
        .unwrap_or_default()
}

/// Returns whether a URI is the unknown one of the checker.
fn is_unknown_uri(uri: &Value) -> bool {
    uri.as_str()
        .is_some_and(|uri| uri.starts_with("turnbuckle-check://"))
}

/// Removes a resource when the client reads it.
fn removed_when_read() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let removed = AtomicBool::new(false);
    move |outgoing| {
        if is_response_to(outgoing, "resources/read")["uri"] == "good://last" {
            removed.store(true, Ordering::Relaxed);
            reject(outgoing, -32602);
        }
        let list = outgoing.message.pointer_mut("/result/resources");
        let list = list.filter(|_| removed.load(Ordering::Relaxed));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.retain(|it| it["uri"] != "good://last");
        }
    }
}

/// Rejects a state that was in an accepted retry before.
fn accepted_once() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let accepted = Mutex::new(HashSet::new());
    move |outgoing| {
        let call = is_response_to(outgoing, "tools/call");
        let is_result = outgoing.message.get("result").is_some();
        let state = call["requestState"].as_str().filter(|_| is_result);
        if state.is_some_and(|state| !accepted.lock().unwrap().insert(state.to_owned())) {
            reject(outgoing, -32602);
        }
    }
}

fn respond(outgoing: &mut OutgoingMessage, mut result: Value) {
    let server_info = json!({ "name": "good", "version": "1.0" });
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info });
    let id = outgoing.message["id"].clone();
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
}

fn reject(outgoing: &mut OutgoingMessage, code: i64) {
    let id = outgoing.message["id"].clone();
    let error = json!({ "code": code, "message": "Not now." });
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
}

/// Responds with `input_required`.
fn requests_input(outgoing: &mut OutgoingMessage) {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "mode": "form", "message": "Which?", "requestedSchema": form });
    let input_request = json!({ "method": "elicitation/create", "params": params });
    respond(
        outgoing,
        json!({ "resultType": "input_required", "inputRequests": { "which": input_request } }),
    );
}

#[tokio::test(start_paused = true)]
async fn list_change_may_be_notified_before_or_after_the_response() {
    for after in [false, true] {
        let grown = AtomicBool::new(false);
        let variant = Mutant::new(
            "subscriptions.changes-told",
            "a new tool with a notification",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_sent(move |outgoing| {
            let changed = outgoing
                .request
                .as_ref()
                .is_some_and(|request| request["params"]["name"] == "stir");
            let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            if outgoing.message["method"] == change["method"] {
                outgoing.message = Value::Null;
            } else if changed {
                grown.store(true, Ordering::Relaxed);
                if after {
                    outgoing.after.push(change);
                } else {
                    outgoing.before.push(change);
                }
            } else if grown.load(Ordering::Relaxed)
                && let Some(Value::Array(tools)) = outgoing.message.pointer_mut("/result/tools")
            {
                let mut tool = tools[0].clone();
                tool["name"] = "grown".into();
                tools.push(tool);
            }
        });
        assert_allowed(variant).await;
    }
}
