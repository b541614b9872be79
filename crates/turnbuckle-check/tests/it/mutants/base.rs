//! JSON-RPC mutants.

use serde_json::{Value, json};
use turnbuckle_check::report::RuleStatus;
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = ids();
    all.extend(messages());
    all.extend(errors());
    all.extend(meta());
    all
}

fn ids() -> Vec<Mutant> {
    vec![
        Mutant::new("base.same-id", "numeric string ids become numbers").map_sent(|outgoing| {
            if outgoing.message["id"] == "1" {
                outgoing.message["id"] = 1.into();
            }
        }),
        Mutant::new("base.same-id", "large ids are rounded")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["id"] == 9_007_199_254_740_991_i64 {
                    outgoing.message["id"] = 9_007_199_254_740_000_i64.into();
                }
            }),
        Mutant::new("base.error-same-id", "errors without an id")
            .for_requirement("base.response.same-id")
            .map_sent(|outgoing| {
                if outgoing.message["error"]["code"] == -32601 {
                    remove(&mut outgoing.message, "id");
                }
            }),
        Mutant::new("base.many-at-once", "drops the seventh concurrent request")
            .on_ndjson()
            .map_received(|incoming| {
                let id = incoming.message["id"].as_i64().unwrap_or_default();
                let latest = incoming.earlier.iter().rev().take(6);
                let row = latest.zip(1..).filter(|(message, back)| {
                    message["method"] == "server/discover" && message["id"] == id - back
                });
                if row.count() == 6 {
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("base.answered-once", "two responses to `tools/list`")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/list") {
                    outgoing.before.push(outgoing.message.clone());
                }
            }),
    ]
}

fn messages() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "base.notifications-unanswered",
            "an error for an unknown notification",
        )
        .on_ndjson()
        .map_received(|incoming| {
            let unknown = incoming.message["method"] == "notifications/turnbuckle/unknown";
            if unknown && incoming.message.get("id").is_none() {
                incoming.response = Some(error(&Value::Null, -32601));
            }
        }),
        Mutant::new(
            "base.notifications-unanswered",
            "an error with an invented id for a notification",
        )
        .on_ndjson()
        .map_received(|incoming| {
            let unknown = incoming.message["method"] == "notifications/turnbuckle/unknown";
            if unknown && incoming.message.get("id").is_none() {
                incoming.response = Some(error(&json!("none"), -32601));
            }
        }),
        Mutant::new("base.ping", "`ping` returns an error").map_sent(|outgoing| {
            if is_response_to(outgoing, "ping") {
                outgoing.message = error(&outgoing.message["id"], -32601);
            }
        }),
        Mutant::new("base.ping-is-gone", "`ping` returns a result").map_sent(|outgoing| {
            if is_response_to(outgoing, "ping") && outgoing.message["id"].is_i64() {
                let (id, result) = (&outgoing.message["id"], json!({ "resultType": "complete" }));
                outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            }
        }),
        Mutant::new("base.batch", "rejects batches").map_received(|incoming| {
            if incoming.message.is_array() {
                incoming.response = Some(error(&Value::Null, -32600));
            }
        }),
        Mutant::new("base.new-ids", "all server requests have the same id")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "ping") {
                    let request = json!({ "jsonrpc": "2.0", "id": "mine", "method": "roots/list" });
                    outgoing.before.push(request);
                }
            }),
        Mutant::new("base.notifications-without-id", "notifications with an id")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/list") {
                    let method = "notifications/tools/list_changed";
                    let notification = json!({ "jsonrpc": "2.0", "id": 7, "method": method });
                    outgoing.before.push(notification);
                }
            }),
    ]
}

fn errors() -> Vec<Mutant> {
    let invalid_tool = |outgoing: &mut OutgoingMessage, code: i64| {
        let name = outgoing
            .request
            .as_ref()
            .map(|request| &request["params"]["name"]);
        if name.is_some_and(|name| name == "__proto__") {
            outgoing.message = error(&outgoing.message["id"], code);
        }
    };
    vec![
        Mutant::new(
            "base.unknown-method",
            "an internal error for an unknown method",
        )
        .map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32601 {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new("base.parse-error", "error -32600 for invalid JSON").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32700 {
                outgoing.message["error"]["code"] = (-32600).into();
            }
        }),
        Mutant::new("base.parse-error-answered", "no response to invalid JSON")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["error"]["code"] == -32700 {
                    outgoing.message = Value::Null;
                }
            }),
        Mutant::new("base.invalid-request", "error -32601 for a numeric method").map_sent(
            |outgoing| {
                if outgoing.message["error"]["code"] == -32600
                    && outgoing.message["id"] == "no-method"
                {
                    outgoing.message["error"]["code"] = (-32601).into();
                }
            },
        ),
        Mutant::new(
            "base.invalid-params",
            "an internal error for a call without a name",
        )
        .map_sent(|outgoing| {
            let params = outgoing.request.as_ref().map(|request| &request["params"]);
            let nameless = params.is_some_and(|params| params["name"].is_null());
            if nameless && is_response_to(outgoing, "tools/call") {
                outgoing.message = error(&outgoing.message["id"], -32603);
            }
        }),
        Mutant::new("base.reserved-codes", "a reserved code")
            .map_sent(move |outgoing| invalid_tool(outgoing, -32050)),
        Mutant::new("base.retired-codes", "a retired code")
            .map_sent(move |outgoing| invalid_tool(outgoing, -32042)),
        Mutant::new("base.legacy-codes", "a legacy code")
            .map_sent(move |outgoing| invalid_tool(outgoing, -32001)),
        Mutant::new("base.own-codes", "a code that JSON-RPC reserves")
            .map_sent(move |outgoing| invalid_tool(outgoing, -32150)),
        Mutant::new("base.code-meanings", "error -32022 for an unknown tool")
            .map_sent(move |outgoing| invalid_tool(outgoing, -32022)),
        Mutant::new("base.short-errors", "a long error message").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32601 {
                outgoing.message["error"]["message"] = "No.\nNot here.\n".into();
            }
        }),
    ]
}

fn meta() -> Vec<Mutant> {
    let with = |violates, name, key: &'static str| {
        Mutant::new(violates, name).map_response_to("tools/list", move |message| {
            message["result"]["_meta"][key] = "x".into();
        })
    };
    vec![
        with(
            "base.meta-keys",
            "a key that starts with an underscore",
            "_private",
        )
        .for_requirement("meta.key.name-format"),
        with(
            "base.meta-keys",
            "a prefix that starts with a digit",
            "1com.example/key",
        )
        .for_requirement("meta.key.label-format"),
        with(
            "base.meta-prefix",
            "a key with a reserved prefix",
            "dev.mcp/key",
        ),
        with(
            "base.meta-prefix",
            "a key with a prefix that 2025-06-18 reserves",
            "mcp.dev/key",
        )
        .in_revision(Revision::V2025_06_18),
        with(
            "base.trace-context",
            "an invalid `traceparent`",
            "traceparent",
        ),
        Mutant::new("base.server-info", "no server info in `tools/list`").map_response_to(
            "tools/list",
            |message| {
                remove(&mut message["result"], "_meta");
            },
        ),
        Mutant::new("base.foreign-meta", "an error for unknown keys").map_received(|incoming| {
            if incoming.message["params"]["_meta"]["com.example/turnbuckle"].is_object() {
                incoming.response = Some(error(&incoming.message["id"], -32602));
            }
        }),
    ]
}

/// Returns whether a message responds to this method.
pub(crate) fn is_response_to(outgoing: &OutgoingMessage, method: &str) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| request["method"] == method)
}

/// Returns an error for this id; without an id if it is null.
pub(crate) fn error(id: &Value, code: i64) -> Value {
    let mut error = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": "No." } });
    if !id.is_null() {
        error["id"] = id.clone();
    }
    error
}

/// Removes a member.
pub(super) fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

#[tokio::test(start_paused = true)]
async fn each_id_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(ids()).await;
}

#[tokio::test(start_paused = true)]
async fn each_message_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(messages()).await;
}

#[tokio::test(start_paused = true)]
async fn each_error_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(errors()).await;
}

#[tokio::test(start_paused = true)]
async fn each_meta_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(meta()).await;
}

/// A batch may get its responses as separate stream events instead of an array.
#[tokio::test(start_paused = true)]
async fn responses_to_a_batch_may_arrive_separately() {
    let server =
        Mutant::new("base.batch", "separate responses").response(|_, outgoing_response| {
            let body = outgoing_response.body.as_deref().unwrap_or_default();
            let Ok(Value::Array(answers)) = serde_json::from_slice(body) else {
                return;
            };
            let events = answers
                .iter()
                .map(|response| format!("data: {response}\n\n"));
            outgoing_response.body = Some(events.collect::<String>().into_bytes());
            let kind = http::HeaderValue::from_static("text/event-stream");
            outgoing_response.head.headers.insert("content-type", kind);
        });

    let report = server.check().await;

    let mut batches = report
        .results()
        .filter(|(_, result)| result.rule.id == "base.batch");
    let (_, result) = batches.next().expect("the rule applies in this revision");
    assert_eq!(result.status(), RuleStatus::Pass, "{result:#?}");
}
