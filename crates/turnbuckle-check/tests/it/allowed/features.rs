//! Features: tools, resources, prompts, questions and tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use turnbuckle_check::report::{Report, RuleStatus};
use turnbuckle_protocol::revision::Revision;

use super::wire::assert_allowed;
use crate::{
    mutant::{Mutant, OutgoingMessage},
    mutants::tasks::numbered,
};

/// Servers that do nothing wrong, each with the rule that could be mistaken about it.
fn allowed() -> Vec<Mutant> {
    vec![
        Mutant::new("prompts.missing-arguments", "asks for what is missing").map_sent(|outgoing| {
            let prompt = is_response_to(outgoing, "prompts/get")["name"] == "review";
            if prompt && outgoing.message["error"]["code"] == -32602 {
                asks(outgoing);
            }
        }),
        Mutant::new("resources.not-found", "asks before it says what there is").map_sent(|outgoing| {
            let uri = is_response_to(outgoing, "resources/read")["uri"].clone();
            if is_made_up(&uri) {
                asks(outgoing);
            }
        }),
        Mutant::new("resources.not-found", "has a template for whatever there is").map_sent(|outgoing| {
            let uri = is_response_to(outgoing, "resources/read")["uri"].clone();
            if is_made_up(&uri) {
                let contents = json!([{ "uri": uri, "mimeType": "text/plain", "text": "Here." }]);
                answer(outgoing, json!({
                    "contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                }));
            }
            if let Some(templates) = outgoing.message.pointer_mut("/result/resourceTemplates/0") {
                templates["uriTemplate"] = "{+address}".into();
            }
        }),
        Mutant::new(
            "resources.listed-can-be-read",
            "a resource goes while one looks",
        )
        .map_sent(goes()),
        Mutant::new("elicitation.complete-known", "completes what an error has asked for")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/call")["name"] == "panel" {
                    let page = json!({
                        "mode": "url", "elicitationId": "page-1", "url": "https://example.com/", "message": "Look.",
                    });
                    refuse(outgoing, -32042);
                    outgoing.message["error"]["data"] = json!({ "elicitations": [page] });
                    let params = json!({ "elicitationId": "page-1" });
                    outgoing.after.push(json!({
                        "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params,
                    }));
                }
            }),
        Mutant::new("tasks.messages-related", "asks for roots of its own accord")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["result"]["task"].is_object() {
                    let id = crate::mutant::unique_id();
                    outgoing.after.push(json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" }));
                }
            }),
        numbered().guarded(),
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
        Mutant::new("input.state-of-another-request", "a state that decides nothing")
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
        Mutant::new("tools.wrong-arguments-as-result", "only arguments that headers repeat").map_sent(|outgoing| {
            let tools = outgoing.message.pointer_mut("/result/tools");
            if let Some(tools) = tools.and_then(Value::as_array_mut) {
                tools.retain(|tool| tool["name"] != "add");
            }
            // A header that does not repeat its argument is refused before the tool is asked.
            let call = is_response_to(outgoing, "tools/call");
            if call["name"] == "forecast" && call["arguments"]["region"].is_object() {
                refuse(outgoing, -32020);
            }
        }),
        Mutant::new("tools.schemas-valid", "patterns that look ahead").map_response_to("tools/list", |message| {
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

/// Servers that do something wrong, each with a rule that is about something else.
fn beside_the_point() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.names-case", "no tool is ever unknown").map_sent(|outgoing| {
            let unknown = outgoing.message["error"]["code"] == -32602;
            if unknown && is_response_to(outgoing, "tools/call").is_object() {
                let text = json!({ "type": "text", "text": "There is no such tool." });
                answer(
                    outgoing,
                    json!({ "content": [text], "resultType": "complete" }),
                );
            }
        }),
        Mutant::new("prompts.capability", "no word about what is not there")
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
        Mutant::new("cancellation.strays-ignored", "refuses what it cannot read")
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
async fn what_is_allowed_is_not_held_against_a_server() {
    let mut wrong = Vec::new();
    for mutant in allowed() {
        let report = mutant.check().await;
        wrong.extend(held_against(&mutant, &report, |_| true));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test(start_paused = true)]
async fn no_rule_is_broken_by_what_it_is_not_about() {
    let mut wrong = Vec::new();
    for mutant in beside_the_point() {
        let report = mutant.check().await;
        wrong.extend(held_against(&mutant, &report, |id| id == mutant.violates));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn held_against(mutant: &Mutant, report: &Report, rules: impl Fn(&str) -> bool) -> Vec<String> {
    let held = report
        .results()
        .filter(|(_, result)| match result.status() {
            RuleStatus::Fail | RuleStatus::Warn => rules(result.rule.id),
            RuleStatus::Advice => result.rule.id == mutant.violates,
            _ => false,
        });
    held.map(|(_, result)| {
        let (id, verdict) = (result.rule.id, &result.outcome);
        format!("“{}” trips {id}: {verdict:#?}", mutant.name)
    })
    .collect()
}

/// Returns the parameters of the request that a message answers, if it is of this method.
fn is_response_to(outgoing: &OutgoingMessage, method: &str) -> Value {
    let asked = outgoing.request.as_ref();
    let asked = asked.filter(|asked| asked["method"] == method);
    asked
        .map(|asked| asked["params"].clone())
        .unwrap_or_default()
}

/// Says whether an address is the one that nobody has.
fn is_made_up(uri: &Value) -> bool {
    uri.as_str()
        .is_some_and(|uri| uri.starts_with("turnbuckle-check://"))
}

/// Loses a resource when somebody wants to read it.
fn goes() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let gone = AtomicBool::new(false);
    move |outgoing| {
        if is_response_to(outgoing, "resources/read")["uri"] == "good://last" {
            gone.store(true, Ordering::Relaxed);
            refuse(outgoing, -32602);
        }
        let list = outgoing.message.pointer_mut("/result/resources");
        let list = list.filter(|_| gone.load(Ordering::Relaxed));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.retain(|it| it["uri"] != "good://last");
        }
    }
}

fn answer(outgoing: &mut OutgoingMessage, mut result: Value) {
    let good = json!({ "name": "good", "version": "1.0" });
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": good });
    let id = outgoing.message["id"].clone();
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
}

fn refuse(outgoing: &mut OutgoingMessage, code: i64) {
    let id = outgoing.message["id"].clone();
    let error = json!({ "code": code, "message": "Not now." });
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
}

/// Answers with a question.
fn asks(outgoing: &mut OutgoingMessage) {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "mode": "form", "message": "Which?", "requestedSchema": form });
    let question = json!({ "method": "elicitation/create", "params": params });
    answer(
        outgoing,
        json!({ "resultType": "input_required", "inputRequests": { "which": question } }),
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_list_may_be_announced_before_or_after_the_answer() {
    for after in [false, true] {
        let grown = AtomicBool::new(false);
        let variant = Mutant::new("subscriptions.changes-told", "a new tool, announced")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_sent(move |outgoing| {
                let stirred = outgoing
                    .request
                    .as_ref()
                    .is_some_and(|asked| asked["params"]["name"] == "stir");
                let change =
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                if outgoing.message["method"] == change["method"] {
                    outgoing.message = Value::Null;
                } else if stirred {
                    grown.store(true, Ordering::Relaxed);
                    if after {
                        outgoing.after.push(change)
                    } else {
                        outgoing.before.push(change)
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
