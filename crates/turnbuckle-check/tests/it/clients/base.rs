//! JSON-RPC mutants.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::mutant::Mutant;

const LEGACY: Revision = Revision::V2025_11_25;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.base.params-object", "positional parameters")
            .in_revision(Revision::V2025_11_25)
            .requests_input("ping", |message| {
                message["params"] = json!([]);
            }),
        Mutant::new("client.base.json-rpc", "an older version of JSON-RPC")
            .for_requirement("base.jsonrpc.version-field")
            .requests_input("tools/list", |message| message["jsonrpc"] = "1.0".into()),
        Mutant::new("client.base.id-type", "ids with a fraction")
            .for_requirement("base.request.id-type")
            .map_sent(|outgoing| {
                if outgoing.is_request() {
                    outgoing.message["id"] =
                        json!(outgoing.message["id"].as_f64().unwrap_or(1.0) + 0.5);
                }
            })
            .map_received(|message| {
                if let Some(id) = message.get("id").and_then(Value::as_f64) {
                    #[expect(clippy::cast_possible_truncation, reason = "an id of 1.0")]
                    let id = (id - 0.5) as i64;
                    message["id"] = id.into();
                }
            }),
        Mutant::new("client.base.id-unique", "the same id twice in a session")
            .in_revision(LEGACY)
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/list" {
                    outgoing.after.push(outgoing.message.clone());
                }
            }),
        Mutant::new("client.base.id-unique", "the same id twice in flight")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.message["params"]["name"] == "slow" {
                    outgoing.after.push(outgoing.message.clone());
                }
            }),
        Mutant::new(
            "client.base.notification-without-id",
            "a notification with an id",
        )
        .on_ndjson()
        .requests_input("notifications/cancelled", |message| {
            message["id"] = 12_345.into();
        }),
        Mutant::new("client.base.no-batch", "a batch of one")
            .for_requirement("base.batch.removed")
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/list" {
                    outgoing.text = Some(json!([outgoing.message]).to_string());
                }
            }),
        Mutant::new("client.base.batch-received", "ignores batches").map_received(|message| {
            if message.is_array() {
                *message = json!({ "jsonrpc": "2.0", "method": "notifications/nothing" });
            }
        }),
        Mutant::new("client.base.same-id", "ids become strings")
            .in_revision(LEGACY)
            .map_sent(|outgoing| {
                if outgoing.method().is_empty() && outgoing.message["id"].is_number() {
                    outgoing.message["id"] = outgoing.message["id"].to_string().into();
                }
            }),
        Mutant::new("client.base.one-of", "a result and an error")
            .in_revision(LEGACY)
            .map_sent(|outgoing| {
                if outgoing.message.get("result").is_some() {
                    outgoing.message["error"] = json!({ "code": 0, "message": "none" });
                }
            }),
        Mutant::new("client.base.error-object", "an error without a message")
            .for_requirement("base.error.code-message")
            .in_revision(LEGACY)
            .map_response_to("ask-unknown", |message| {
                message["error"]["message"] = Value::Null;
            }),
        Mutant::new(
            "client.base.unknown-method",
            "an internal error for an unknown method",
        )
        .in_revision(LEGACY)
        .map_response_to("ask-unknown", |message| {
            message["error"]["code"] = (-32603).into();
        }),
        Mutant::new(
            "client.base.unknown-method",
            "no response to an unknown method",
        )
        .in_revision(LEGACY)
        .map_response_to("ask-unknown", |message| *message = Value::Null),
        Mutant::new("client.base.no-reply", "an error for a notification")
            .in_revision(LEGACY)
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/call" {
                    let error = json!({ "code": -32601, "message": "unknown notification" });
                    outgoing
                        .before
                        .push(json!({ "jsonrpc": "2.0", "id": null, "error": error }));
                }
            }),
        Mutant::new("client.base.no-responses", "an unrequested response")
            .for_requirement("base.client-no-responses")
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/list" {
                    outgoing
                        .before
                        .push(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
                }
            }),
        Mutant::new("client.meta.protocol-version", "no revision")
            .for_requirement("meta.request.protocol-version")
            .on_ndjson()
            .requests_input("tools/list", |message| {
                drop_meta(message, "protocolVersion");
            }),
        Mutant::new("client.meta.client-capabilities", "no capabilities").requests_input(
            "tools/list",
            |message| {
                drop_meta(message, "clientCapabilities");
            },
        ),
        Mutant::new("client.meta.client-info", "no client info").requests_input(
            "tools/list",
            |message| {
                drop_meta(message, "clientInfo");
            },
        ),
        Mutant::new("client.meta.keys", "a prefix that starts with a digit")
            .for_requirement("meta.key.label-format")
            .requests_input("tools/list", |message| {
                message["params"]["_meta"]["1st.example/key"] = true.into();
            }),
        Mutant::new(
            "client.meta.reserved",
            "a custom key with a reserved prefix",
        )
        .requests_input("tools/list", |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/mine"] = true.into();
        }),
    ]
}

fn drop_meta(message: &mut Value, name: &str) {
    let meta = message["params"]["_meta"].as_object_mut().unwrap();
    meta.remove(&format!("io.modelcontextprotocol/{name}"))
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
