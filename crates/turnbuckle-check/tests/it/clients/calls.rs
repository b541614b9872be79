//! Mutants of lists and calls.

use serde_json::{Value, json};

use super::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.pages.opaque", "a decoded cursor").map_sent(|outgoing| {
            if let Some(Value::String(cursor)) = outgoing.message.pointer_mut("/params/cursor") {
                *cursor = cursor.replace("%20", " ");
            }
        }),
        Mutant::new("client.pages.followed", "reads one page only")
            .for_requirement("pagination.client.both")
            .map_received(|message| {
                forget_cursor(message, |_| true);
            }),
        Mutant::new("client.pages.end", "null for a cursor")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.method() == "resources/templates/list" {
                    let mut more = outgoing.message.clone();
                    more["id"] = "more".into();
                    more["method"] = "tools/list".into();
                    more["params"]["cursor"] = Value::Null;
                    outgoing.before.push(more);
                }
            }),
        Mutant::new("client.pages.empty-cursor", "ignores an empty cursor").map_received(
            |message| {
                forget_cursor(message, str::is_empty);
            },
        ),
        Mutant::new(
            "client.cancellation.own-request",
            "cancels another client's request",
        )
        .for_requirement("cancellation.reference.client-issued")
        .on_ndjson()
        .requests_input("notifications/cancelled", |message| {
            message["params"]["requestId"] = 12_345.into();
        }),
        Mutant::new("client.progress.token-type", "a token with a fraction").map_sent(|outgoing| {
            if let Some(token) = outgoing.message.pointer_mut("/params/_meta/progressToken") {
                *token = json!(0.5);
            }
        }),
        Mutant::new("client.progress.token-unique", "one token for all requests")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["params"]["name"] == "slow" {
                    let mut twin = outgoing.message.clone();
                    twin["id"] = "twin".into();
                    outgoing.after.push(twin.clone());
                    twin["id"] = "third".into();
                    outgoing.after.push(twin);
                }
            }),
        Mutant::new("client.tasks.required", "a plain call of a task-only tool").map_sent(
            |outgoing| {
                let params = outgoing.message.get_mut("params");
                if let Some(params) = params.and_then(Value::as_object_mut) {
                    params.remove("task");
                }
            },
        ),
        Mutant::new("client.tasks.not-allowed", "all calls are tasks")
            .for_requirement("tasks.tool.forbidden-client")
            .map_sent(|outgoing| {
                if outgoing.message["params"]["name"] == "hello" {
                    outgoing.message["params"]["task"] = json!({ "ttl": 1000 });
                }
            }),
    ]
}

fn forget_cursor(message: &mut Value, which: impl Fn(&str) -> bool) {
    let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) else {
        return;
    };
    let next = result.get("nextCursor").and_then(Value::as_str);
    if next.is_some_and(which) {
        result.remove("nextCursor");
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
