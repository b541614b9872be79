//! Subscription mutants.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

/// The `_meta` key of the subscription id.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(super) fn mutants() -> Vec<Mutant> {
    [legacy(), modern()].into_iter().flatten().collect()
}

fn legacy() -> Vec<Mutant> {
    vec![
        Mutant::new("subscriptions.subscribe", "no `resources/unsubscribe`").map_response_to(
            "resources/unsubscribe",
            |message| {
                let error = json!({ "code": -32603, "message": "ignores `resources/unsubscribe`" });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            },
        ),
        Mutant::new(
            "subscriptions.only-subscribed",
            "updates after `resources/unsubscribe`",
        )
        .on_ndjson()
        .map_received(|incoming| {
            if incoming.message["method"] == "resources/unsubscribe" {
                incoming.response =
                    Some(json!({ "jsonrpc": "2.0", "id": incoming.message["id"], "result": {} }));
                incoming.message = Value::Null;
            }
        }),
        Mutant::new(
            "subscriptions.only-subscribed",
            "updates without a subscription",
        )
        .on_ndjson()
        .map_sent(|outgoing| {
            if matches_name(outgoing, "stir") {
                let params = json!({ "uri": "other://place" });
                outgoing
                    .before
                    .push(notification("notifications/resources/updated", &params));
            }
        }),
        Mutant::new("subscriptions.changes-declared", "undeclared list changes")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_response_to("initialize", |message| {
                message["result"]["capabilities"]["tools"] = json!({});
            }),
        changed_in_silence(),
    ]
}

/// Returns a server with a tool list that grows with a call, without a notification.
fn changed_in_silence() -> Mutant {
    let grown = AtomicBool::new(false);
    Mutant::new(
        "subscriptions.changes-told",
        "a new tool without a notification",
    )
    .for_requirement("tools.list-changed.send")
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
        Mutant::new("subscriptions.acknowledged-first", "a change before the acknowledgement")
            .for_requirement("subscriptions.ack.nothing-before")
            .map_sent(|outgoing| {
            let params = outgoing.message["params"].clone();
            if is_acknowledgement(outgoing) && params["notifications"]["toolsListChanged"] == true {
                let params = json!({ "_meta": params["_meta"] });
                outgoing.before.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.acknowledged-first", "no acknowledgement")
            .for_requirement("subscriptions.ack.nothing-before")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_acknowledgement(outgoing) {
                    outgoing.message = Value::Null;
                }
            }),
        Mutant::new("subscriptions.acknowledges-less-or-equal", "acknowledges more than was requested").map_sent(|outgoing| {
            if is_acknowledgement(outgoing) {
                outgoing.message["params"]["notifications"]["toolsListChanged"] = true.into();
            }
        }),
        Mutant::new("subscriptions.tagged", "a numeric id as a string")
            .for_requirement("subscriptions.id.value")
            .map_sent(|outgoing| {
            let meta = outgoing.message.pointer_mut("/params/_meta");
            let tag = meta.and_then(|meta| meta.get_mut(SUBSCRIPTION));
            if let Some(tag) = tag.filter(|tag| tag.is_number()) {
                *tag = tag.to_string().into();
            }
        }),
        Mutant::new("subscriptions.tagged", "changes without the subscription id")
            .for_requirement("subscriptions.id.tag")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["method"] == "notifications/tools/list_changed" {
                    outgoing.message["params"] = json!({});
                }
            }),
        Mutant::new("subscriptions.only-asked", "ignores the filter")
            .for_requirement("subscriptions.filter.only-requested")
            .map_sent(|outgoing| {
            if is_acknowledgement(outgoing) && outgoing.message["params"]["notifications"] == json!({}) {
                let params = json!({ "_meta": outgoing.message["params"]["_meta"] });
                outgoing.after.push(notification("notifications/tools/list_changed", &params));
            }
        }),
        Mutant::new("subscriptions.only-asked", "logs on subscription streams")
            .for_requirement("logging.request.own-stream")
            .map_sent(|outgoing| {
            if is_acknowledgement(outgoing) {
                let params = json!({
                    "_meta": outgoing.message["params"]["_meta"], "level": "info", "data": "a listener",
                });
                outgoing.after.push(notification("notifications/message", &params));
            }
        }),
        Mutant::new("subscriptions.stops", "ignores the cancellation")
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
        Mutant::new("subscriptions.subscribe-is-gone", "still supports `resources/subscribe`").map_response_to(
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

/// Returns whether a message responds to a call of this tool.
fn matches_name(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| request["params"]["name"] == tool)
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[tokio::test(start_paused = true)]
async fn each_legacy_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(legacy()).await;
}

#[tokio::test(start_paused = true)]
async fn each_modern_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(modern()).await;
}
