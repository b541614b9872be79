//! Features: tools, resources, prompts, questions and tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use turnbuckle_check::report::{Grade, Report};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, Saying};
use crate::mutants::tasks::numbered;

use super::wire::assert_allowed;

/// Servers that do nothing wrong, each with the rule that could be mistaken about it.
fn allowed() -> Vec<Mutant> {
    vec![
        Mutant::new("prompts.missing-arguments", "asks for what is missing").says(|saying| {
            let prompt = asked(saying, "prompts/get")["name"] == "review";
            if prompt && saying.message["error"]["code"] == -32602 {
                asks(saying);
            }
        }),
        Mutant::new("resources.not-found", "asks before it says what there is").says(|saying| {
            let uri = asked(saying, "resources/read")["uri"].clone();
            if is_made_up(&uri) {
                asks(saying);
            }
        }),
        Mutant::new("resources.not-found", "has a template for whatever there is").says(|saying| {
            let uri = asked(saying, "resources/read")["uri"].clone();
            if is_made_up(&uri) {
                let contents = json!([{ "uri": uri, "mimeType": "text/plain", "text": "Here." }]);
                answer(saying, json!({
                    "contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                }));
            }
            if let Some(templates) = saying.message.pointer_mut("/result/resourceTemplates/0") {
                templates["uriTemplate"] = "{+address}".into();
            }
        }),
        Mutant::new(
            "resources.listed-can-be-read",
            "a resource goes while one looks",
        )
        .says(goes()),
        Mutant::new("elicitation.complete-known", "completes what an error has asked for")
            .on_lines()
            .says(|saying| {
                if asked(saying, "tools/call")["name"] == "panel" {
                    let page = json!({
                        "mode": "url", "elicitationId": "page-1", "url": "https://example.com/", "message": "Look.",
                    });
                    refuse(saying, -32042);
                    saying.message["error"]["data"] = json!({ "elicitations": [page] });
                    let params = json!({ "elicitationId": "page-1" });
                    saying.after.push(json!({
                        "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params,
                    }));
                }
            }),
        Mutant::new("tasks.messages-related", "asks for roots of its own accord")
            .on_lines()
            .says(|saying| {
                if saying.message["result"]["task"].is_object() {
                    let id = crate::mutant::fresh_id();
                    saying.after.push(json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" }));
                }
            }),
        numbered().guarded(),
        Mutant::new("subscriptions.subscribe", "one resource that never changes")
            .on_lines()
            .hears(|hearing| {
                let subscribes = hearing.message["method"] == "resources/subscribe";
                if subscribes && hearing.message["params"]["uri"] == "good://greeting" {
                    let error = json!({ "code": -32602, "message": "It never changes." });
                    let id = hearing.message["id"].clone();
                    hearing.answer = Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                    hearing.message = Value::Null;
                }
            }),
        Mutant::new("input.state-of-another-request", "a state that decides nothing")
            .says(|saying| {
                if let Some(state) = saying.message.pointer_mut("/result/requestState") {
                    *state = "nothing".into();
                }
            })
            .hears(|hearing| {
                if let Some(params) = hearing
                    .message
                    .pointer_mut("/params")
                    .and_then(Value::as_object_mut) {
                    params.remove("requestState");
                }
            }),
        Mutant::new("tools.wrong-arguments-as-result", "only arguments that headers repeat").says(|saying| {
            let tools = saying.message.pointer_mut("/result/tools");
            if let Some(tools) = tools.and_then(Value::as_array_mut) {
                tools.retain(|tool| tool["name"] != "add");
            }
            // A header that does not repeat its argument is refused before the tool is asked.
            let call = asked(saying, "tools/call");
            if call["name"] == "forecast" && call["arguments"]["region"].is_object() {
                refuse(saying, -32020);
            }
        }),
        Mutant::new("tools.schemas-valid", "patterns that look ahead").answers("tools/list", |message| {
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
        Mutant::new("tools.names-case", "no tool is ever unknown").says(|saying| {
            let unknown = saying.message["error"]["code"] == -32602;
            if unknown && asked(saying, "tools/call").is_object() {
                let text = json!({ "type": "text", "text": "There is no such tool." });
                answer(
                    saying,
                    json!({ "content": [text], "resultType": "complete" }),
                );
            }
        }),
        Mutant::new("prompts.capability", "no word about what is not there")
            .on_lines()
            .hears(|hearing| {
                if hearing.message["method"] == "prompts/list" {
                    hearing.message = Value::Null;
                }
            })
            .answers("server/discover", |message| {
                let capabilities = message.pointer_mut("/result/capabilities");
                if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
                    capabilities.remove("prompts");
                }
            }),
        Mutant::new("cancellation.strays-ignored", "refuses what it cannot read")
            .in_revision(Revision::V2025_06_18)
            .hears(|hearing| {
                let stray = hearing.message["params"]["requestId"].is_null();
                if stray && hearing.message["method"] == "notifications/cancelled" {
                    let error = json!({ "code": -32602, "message": "no `requestId`" });
                    hearing.answer = Some(json!({ "jsonrpc": "2.0", "error": error }));
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
        wrong.extend(held_against(&mutant, &report, |id| id == mutant.trips));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn held_against(mutant: &Mutant, report: &Report, rules: impl Fn(&str) -> bool) -> Vec<String> {
    let held = report.rulings().filter(|(_, ruling)| match ruling.grade() {
        Grade::Fail | Grade::Warn => rules(ruling.rule.id),
        Grade::Advice => ruling.rule.id == mutant.trips,
        _ => false,
    });
    held.map(|(_, ruling)| {
        let (id, verdict) = (ruling.rule.id, &ruling.verdict);
        format!("“{}” trips {id}: {verdict:#?}", mutant.name)
    })
    .collect()
}

/// Returns the parameters of the request that a message answers, if it is of this method.
fn asked(saying: &Saying, method: &str) -> Value {
    let asked = saying.asked.as_ref();
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
fn goes() -> impl Fn(&mut Saying) + Send + Sync {
    let gone = AtomicBool::new(false);
    move |saying| {
        if asked(saying, "resources/read")["uri"] == "good://last" {
            gone.store(true, Ordering::Relaxed);
            refuse(saying, -32602);
        }
        let list = saying.message.pointer_mut("/result/resources");
        let list = list.filter(|_| gone.load(Ordering::Relaxed));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.retain(|it| it["uri"] != "good://last");
        }
    }
}

fn answer(saying: &mut Saying, mut result: Value) {
    let good = json!({ "name": "good", "version": "1.0" });
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": good });
    let id = saying.message["id"].clone();
    saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
}

fn refuse(saying: &mut Saying, code: i64) {
    let id = saying.message["id"].clone();
    let error = json!({ "code": code, "message": "Not now." });
    saying.message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
}

/// Answers with a question.
fn asks(saying: &mut Saying) {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "mode": "form", "message": "Which?", "requestedSchema": form });
    let question = json!({ "method": "elicitation/create", "params": params });
    answer(
        saying,
        json!({ "resultType": "input_required", "inputRequests": { "which": question } }),
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_list_may_be_announced_before_or_after_the_answer() {
    for after in [false, true] {
        let grown = AtomicBool::new(false);
        let variant = Mutant::new("subscriptions.changes-told", "a new tool, announced")
            .on_lines()
            .in_revision(Revision::V2025_11_25)
            .says(move |saying| {
                let stirred = saying
                    .asked
                    .as_ref()
                    .is_some_and(|asked| asked["params"]["name"] == "stir");
                let change =
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                if saying.message["method"] == change["method"] {
                    saying.message = Value::Null;
                } else if stirred {
                    grown.store(true, Ordering::Relaxed);
                    match after {
                        true => saying.after.push(change),
                        false => saying.before.push(change),
                    }
                } else if grown.load(Ordering::Relaxed)
                    && let Some(Value::Array(tools)) = saying.message.pointer_mut("/result/tools")
                {
                    let mut tool = tools[0].clone();
                    tool["name"] = "grown".into();
                    tools.push(tool);
                }
            });
        assert_allowed(variant).await;
    }
}
