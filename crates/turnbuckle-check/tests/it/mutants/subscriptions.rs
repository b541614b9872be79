//! Being told of changes: not quite right.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

/// The key under which a message says to which subscription it belongs.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(super) fn mutants() -> Vec<Mutant> {
    [legacy(), modern()].into_iter().flatten().collect()
}

fn legacy() -> Vec<Mutant> {
    vec![
        Mutant::new("subscriptions.subscribe", "no way to unsubscribe").map_response_to(
            "resources/unsubscribe",
            |message| {
                let error =
                    json!({ "code": -32603, "message": "once subscribed, always subscribed" });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            },
        ),
        Mutant::new("subscriptions.only-subscribed", "goes on after the end")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.message["method"] == "resources/unsubscribe" {
                    incoming.response = Some(
                        json!({ "jsonrpc": "2.0", "id": incoming.message["id"], "result": {} }),
                    );
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.only-subscribed", "tells of whatever changes")
            .on_ndjson()
            .map_sent(|outgoing| {
                if matches_name(outgoing, "stir") {
                    let params = json!({ "uri": "other://place" });
                    outgoing
                        .before
                        .push(notification("notifications/resources/updated", &params));
                }
            }),
        Mutant::new(
            "subscriptions.changes-declared",
            "tells of tools without saying so",
        )
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_response_to("initialize", |message| {
            message["result"]["capabilities"]["tools"] = json!({});
        }),
        changed_in_silence(),
    ]
}

/// A server whose list of tools grows when one of them is called, and that announces no change of it.
fn changed_in_silence() -> Mutant {
    let grown = AtomicBool::new(false);
    Mutant::new("subscriptions.changes-told", "a new tool in silence")
        .on_ndjson()
        .in_revision(Revision::V2025_11_25)
        .map_sent(move |outgoing| {
            if outgoing.message["method"] == "notifications/tools/list_changed" {
                outgoing.message = Value::Null;
            } else if matches_name(outgoing, "stir") {
                grown.store(true, Ordering::Relaxed);
            } else if grown.load(Ordering::Relaxed)
                && let Some(Value::Array(tools)) = outgoing.message.pointer_mut("/result/tools")
            {
                let mut tool = tools[0].clone();
                tool["name"] = "grown".into();
                tools.push(tool);
            }
        })
}

fn modern() -> Vec<Mutant> {
    vec![
        Mutant::new("subscriptions.acknowledged-first", "news before the acknowledgement").map_sent(|outgoing| {
            let params = outgoing.message["params"].clone();
            if is_acknowledgement(outgoing) && params["notifications"]["toolsListChanged"] == true {
                let params = json!({ "_meta": params["_meta"] });
                outgoing.before.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.acknowledged-first", "no acknowledgement")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_acknowledgement(outgoing) {
                    outgoing.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.acknowledges-less-or-equal", "promises more than was asked").map_sent(|outgoing| {
            if is_acknowledgement(outgoing) {
                outgoing.message["params"]["notifications"]["toolsListChanged"] = true.into();
            }
        }),
        Mutant::new("subscriptions.tagged", "a number as a text").map_sent(|outgoing| {
            let meta = outgoing.message.pointer_mut("/params/_meta");
            let tag = meta.and_then(|meta| meta.get_mut(SUBSCRIPTION));
            if let Some(tag) = tag.filter(|tag| tag.is_number()) {
                *tag = tag.to_string().into();
            }
        }),
        Mutant::new("subscriptions.tagged", "changes without an id")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["method"] == "notifications/tools/list_changed" {
                    outgoing.message["params"] = json!({});
                }
            }),
        Mutant::new("subscriptions.only-asked", "tells everybody everything").map_sent(|outgoing| {
            if is_acknowledgement(outgoing) && outgoing.message["params"]["notifications"] == json!({}) {
                let params = json!({ "_meta": outgoing.message["params"]["_meta"] });
                outgoing.after.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.only-asked", "logs to whoever listens").map_sent(|outgoing| {
            if is_acknowledgement(outgoing) {
                let params = json!({
                    "_meta": outgoing.message["params"]["_meta"], "level": "info", "data": "somebody listens",
                });
                outgoing.after.push(notification("notifications/message", &params));
            }
        }),
        Mutant::new("subscriptions.stops", "does not stop")
            .on_ndjson()
            .map_received(|incoming| {
                let stops = incoming.message["params"]["requestId"] == "check-stops";
                if incoming.message["method"] == "notifications/cancelled" && stops {
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.end-tagged", "ends a subscription without its id").map_sent(|outgoing| {
            if is_acknowledgement(outgoing) && outgoing.message["params"]["notifications"] == json!({}) {
                let id = &outgoing.message["params"]["_meta"][SUBSCRIPTION];
                let result = json!({ "resultType": "complete" });
                outgoing.after.push(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            }
        }),
        Mutant::new("subscriptions.subscribe-is-gone", "still lets resources be subscribed to").map_response_to(
            "resources/subscribe",
            |message| {
                let result = json!({ "resultType": "complete" });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            },
        ),
    ]
}

fn is_acknowledgement(outgoing: &OutgoingMessage) -> bool {
    outgoing.message["method"] == "notifications/subscriptions/acknowledged"
}

/// Says whether a message answers a call of this tool.
fn matches_name(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let asked = outgoing.request.as_ref();
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
