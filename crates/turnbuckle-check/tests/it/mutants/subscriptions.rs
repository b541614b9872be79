//! Being told of changes: not quite right.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, Saying};

/// The key under which a message says to which subscription it belongs.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(super) fn mutants() -> Vec<Mutant> {
    [legacy(), modern()].into_iter().flatten().collect()
}

fn legacy() -> Vec<Mutant> {
    vec![
        Mutant::new("subscriptions.subscribe", "no way to unsubscribe").answers(
            "resources/unsubscribe",
            |message| {
                let error =
                    json!({ "code": -32603, "message": "once subscribed, always subscribed" });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            },
        ),
        Mutant::new("subscriptions.only-subscribed", "goes on after the end")
            .on_lines()
            .hears(|hearing| {
                if hearing.message["method"] == "resources/unsubscribe" {
                    hearing.answer = Some(
                        json!({ "jsonrpc": "2.0", "id": hearing.message["id"], "result": {} }),
                    );
                    hearing.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.only-subscribed", "tells of whatever changes")
            .on_lines()
            .says(|saying| {
                if is_called(saying, "stir") {
                    let params = json!({ "uri": "other://place" });
                    saying
                        .before
                        .push(notification("notifications/resources/updated", &params));
                }
            }),
        Mutant::new(
            "subscriptions.changes-declared",
            "tells of tools without saying so",
        )
        .on_lines()
        .in_revision(Revision::V2025_11_25)
        .answers("initialize", |message| {
            message["result"]["capabilities"]["tools"] = json!({});
        }),
        changed_in_silence(),
    ]
}

/// A server whose list of tools grows when one of them is called, and that announces no change of it.
fn changed_in_silence() -> Mutant {
    let grown = AtomicBool::new(false);
    Mutant::new("subscriptions.changes-told", "a new tool in silence")
        .on_lines()
        .in_revision(Revision::V2025_11_25)
        .says(move |saying| {
            if saying.message["method"] == "notifications/tools/list_changed" {
                saying.message = Value::Null;
            } else if is_called(saying, "stir") {
                grown.store(true, Ordering::Relaxed);
            } else if grown.load(Ordering::Relaxed)
                && let Some(Value::Array(tools)) = saying.message.pointer_mut("/result/tools")
            {
                let mut tool = tools[0].clone();
                tool["name"] = "grown".into();
                tools.push(tool);
            }
        })
}

fn modern() -> Vec<Mutant> {
    vec![
        Mutant::new("subscriptions.acknowledged-first", "news before the acknowledgement").says(|saying| {
            let params = saying.message["params"].clone();
            if is_acknowledgement(saying) && params["notifications"]["toolsListChanged"] == true {
                let params = json!({ "_meta": params["_meta"] });
                saying.before.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.acknowledged-first", "no acknowledgement")
            .on_lines()
            .says(|saying| {
                if is_acknowledgement(saying) {
                    saying.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.acknowledges-less-or-equal", "promises more than was asked").says(|saying| {
            if is_acknowledgement(saying) {
                saying.message["params"]["notifications"]["toolsListChanged"] = true.into();
            }
        }),
        Mutant::new("subscriptions.tagged", "a number as a text").says(|saying| {
            let meta = saying.message.pointer_mut("/params/_meta");
            let tag = meta.and_then(|meta| meta.get_mut(SUBSCRIPTION));
            if let Some(tag) = tag.filter(|tag| tag.is_number()) {
                *tag = tag.to_string().into();
            }
        }),
        Mutant::new("subscriptions.tagged", "changes without an id")
            .on_lines()
            .says(|saying| {
                if saying.message["method"] == "notifications/tools/list_changed" {
                    saying.message["params"] = json!({});
                }
            }),
        Mutant::new("subscriptions.only-asked", "tells everybody everything").says(|saying| {
            if is_acknowledgement(saying) && saying.message["params"]["notifications"] == json!({}) {
                let params = json!({ "_meta": saying.message["params"]["_meta"] });
                saying.after.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.only-asked", "logs to whoever listens").says(|saying| {
            if is_acknowledgement(saying) {
                let params = json!({
                    "_meta": saying.message["params"]["_meta"], "level": "info", "data": "somebody listens",
                });
                saying.after.push(notification("notifications/message", &params));
            }
        }),
        Mutant::new("subscriptions.stops", "does not stop")
            .on_lines()
            .hears(|hearing| {
                let stops = hearing.message["params"]["requestId"] == "check-stops";
                if hearing.message["method"] == "notifications/cancelled" && stops {
                    hearing.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.end-tagged", "ends a subscription without its id").says(|saying| {
            if is_acknowledgement(saying) && saying.message["params"]["notifications"] == json!({}) {
                let id = &saying.message["params"]["_meta"][SUBSCRIPTION];
                let result = json!({ "resultType": "complete" });
                saying.after.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            }
        }),
        Mutant::new("subscriptions.subscribe-is-gone", "still lets resources be subscribed to").answers(
            "resources/subscribe",
            |message| {
                let result = json!({ "resultType": "complete" });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            },
        ),
    ]
}

fn is_acknowledgement(saying: &Saying) -> bool {
    saying.message["method"] == "notifications/subscriptions/acknowledged"
}

/// Says whether a message answers a call of this tool.
fn is_called(saying: &Saying, tool: &str) -> bool {
    let asked = saying.asked.as_ref();
    asked.is_some_and(|asked| asked["params"]["name"] == tool)
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[tokio::test(start_paused = true)]
async fn legacy_each_trips_its_rule() {
    super::assert_each_trips_its_rule(legacy()).await;
}

#[tokio::test(start_paused = true)]
async fn modern_each_trips_its_rule() {
    super::assert_each_trips_its_rule(modern()).await;
}
