//! Messages of JSON-RPC that are not quite right.

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
        Mutant::new("base.same-id", "ids of digits become numbers").map_sent(|outgoing| {
            if outgoing.message["id"] == "1" {
                outgoing.message["id"] = 1.into();
            }
        }),
        Mutant::new("base.same-id", "large ids lose their last digits")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["id"] == 9_007_199_254_740_991_i64 {
                    outgoing.message["id"] = 9_007_199_254_740_000_i64.into();
                }
            }),
        Mutant::new("base.error-same-id", "errors have no id").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32601 {
                remove(&mut outgoing.message, "id");
            }
        }),
        Mutant::new("base.many-at-once", "forgets the seventh of many")
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
        Mutant::new("base.answered-once", "lists of tools come twice")
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
            "an error for a notification that nobody knows",
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
            "an error with an id for a notification that has none",
        )
        .on_ndjson()
        .map_received(|incoming| {
            let unknown = incoming.message["method"] == "notifications/turnbuckle/unknown";
            if unknown && incoming.message.get("id").is_none() {
                incoming.response = Some(error(&json!("none"), -32601));
            }
        }),
        Mutant::new("base.ping", "`ping` is unknown").map_sent(|outgoing| {
            if is_response_to(outgoing, "ping") {
                outgoing.message = error(&outgoing.message["id"], -32601);
            }
        }),
        Mutant::new("base.ping-is-gone", "`ping` is still there").map_sent(|outgoing| {
            if is_response_to(outgoing, "ping") && outgoing.message["id"].is_i64() {
                let (id, result) = (&outgoing.message["id"], json!({ "resultType": "complete" }));
                outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            }
        }),
        Mutant::new("base.batch", "batches are refused").map_received(|incoming| {
            if incoming.message.is_array() {
                incoming.response = Some(error(&Value::Null, -32600));
            }
        }),
        Mutant::new("base.new-ids", "all its requests have the same id")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "ping") {
                    let request = json!({ "jsonrpc": "2.0", "id": "mine", "method": "roots/list" });
                    outgoing.before.push(request);
                }
            }),
        Mutant::new("base.notifications-without-id", "notifications have an id")
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
    let odd_tool = |outgoing: &mut OutgoingMessage, code: i64| {
        let name = outgoing
            .request
            .as_ref()
            .map(|asked| &asked["params"]["name"]);
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
        Mutant::new("base.parse-error", "an invalid request instead of no JSON").map_sent(
            |outgoing| {
                if outgoing.message["error"]["code"] == -32700 {
                    outgoing.message["error"]["code"] = (-32600).into();
                }
            },
        ),
        Mutant::new("base.parse-error-answered", "silence for what is no JSON")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["error"]["code"] == -32700 {
                    outgoing.message = Value::Null;
                }
            }),
        Mutant::new(
            "base.invalid-request",
            "a method that is a number is unknown",
        )
        .map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32600 && outgoing.message["id"] == "no-method"
            {
                outgoing.message["error"]["code"] = (-32601).into();
            }
        }),
        Mutant::new(
            "base.invalid-params",
            "a call without a name is an internal error",
        )
        .map_sent(|outgoing| {
            let params = outgoing.request.as_ref().map(|asked| &asked["params"]);
            let nameless = params.is_some_and(|params| params["name"].is_null());
            if nameless && is_response_to(outgoing, "tools/call") {
                outgoing.message = error(&outgoing.message["id"], -32603);
            }
        }),
        Mutant::new(
            "base.reserved-codes",
            "a code that the specification may use",
        )
        .map_sent(move |outgoing| odd_tool(outgoing, -32050)),
        Mutant::new("base.retired-codes", "a code that was retired")
            .map_sent(move |outgoing| odd_tool(outgoing, -32042)),
        Mutant::new("base.legacy-codes", "a code of former times")
            .map_sent(move |outgoing| odd_tool(outgoing, -32001)),
        Mutant::new("base.own-codes", "a code that JSON-RPC may use")
            .map_sent(move |outgoing| odd_tool(outgoing, -32150)),
        Mutant::new("base.code-meanings", "no such tool in this version")
            .map_sent(move |outgoing| odd_tool(outgoing, -32022)),
        Mutant::new("base.short-errors", "tells a story").map_sent(|outgoing| {
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
            "a key that begins with a line",
            "_private",
        ),
        with("base.meta-prefix", "a key of the protocol's", "dev.mcp/key"),
        with(
            "base.meta-prefix",
            "a key of the protocol's of then",
            "mcp.dev/key",
        )
        .in_revision(Revision::V2025_06_18),
        with("base.trace-context", "a trace that is none", "traceparent"),
        Mutant::new("base.server-info", "nobody made the list of tools").map_response_to(
            "tools/list",
            |message| {
                remove(&mut message["result"], "_meta");
            },
        ),
        Mutant::new("base.foreign-meta", "unknown keys are an error").map_received(|incoming| {
            if incoming.message["params"]["_meta"]["com.example/turnbuckle"].is_object() {
                incoming.response = Some(error(&incoming.message["id"], -32602));
            }
        }),
    ]
}

/// Says whether a message answers this method.
pub(crate) fn is_response_to(outgoing: &OutgoingMessage, method: &str) -> bool {
    let asked = outgoing.request.as_ref();
    asked.is_some_and(|asked| asked["method"] == method)
}

/// An error that answers this id; without an id if that is null.
pub(crate) fn error(id: &Value, code: i64) -> Value {
    let mut error = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": "No." } });
    if !id.is_null() {
        error["id"] = id.clone();
    }
    error
}

/// Takes a field away.
pub(super) fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

#[tokio::test(start_paused = true)]
async fn each_with_ids_trips_its_rule() {
    super::assert_each_trips_its_rule(ids()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_messages_trips_its_rule() {
    super::assert_each_trips_its_rule(messages()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_errors_trips_its_rule() {
    super::assert_each_trips_its_rule(errors()).await;
}

#[tokio::test(start_paused = true)]
async fn each_with_meta_trips_its_rule() {
    super::assert_each_trips_its_rule(meta()).await;
}

/// An array that is answered by a stream, one event for each answer, is as good as one that is answered by an array.
#[tokio::test(start_paused = true)]
async fn answers_of_a_batch_may_come_one_by_one() {
    let server = Mutant::new("base.batch", "one by one").response(|_, outgoing_response| {
        let body = outgoing_response.body.as_deref().unwrap_or_default();
        let Ok(Value::Array(answers)) = serde_json::from_slice(body) else {
            return;
        };
        let events = answers.iter().map(|answer| format!("data: {answer}\n\n"));
        outgoing_response.body = Some(events.collect::<String>().into_bytes());
        let kind = http::HeaderValue::from_static("text/event-stream");
        outgoing_response.head.headers.insert("content-type", kind);
    });

    let report = server.check().await;

    let mut batches = report
        .results()
        .filter(|(_, result)| result.rule.id == "base.batch");
    let (_, result) = batches.next().expect("the rule binds in this revision");
    assert_eq!(result.status(), RuleStatus::Pass, "{result:#?}");
}
