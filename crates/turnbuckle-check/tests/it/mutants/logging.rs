//! Logging mutants.

use serde_json::{Value, json};

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("logging.declared", "logs without the capability")
            .on_ndjson()
            .map_response_to("server/discover", |message| {
                let capabilities = message.pointer_mut("/result/capabilities");
                if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
                    capabilities.remove("logging");
                }
            }),
        Mutant::new("logging.set-level", "declares logging without `logging/setLevel`")
            .map_response_to("logging/setLevel", reject),
        Mutant::new("logging.respects-level", "ignores the level").map_sent(|outgoing| {
            if answers(outgoing, "talk") {
                outgoing.before.push(log("debug"));
            }
        })
        .on_ndjson(),
        Mutant::new("logging.unknown-level", "accepts any level").map_response_to(
            "logging/setLevel",
            |message| {
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} });
            },
        )
        .in_revision(turnbuckle_protocol::revision::Revision::V2025_06_18),
        Mutant::new("logging.unknown-level", "accepts any level in `_meta`").map_sent(|outgoing| {
            let request = outgoing.request.as_ref();
            let unknown = request.is_some_and(|request| request["id"] == "check-level");
            if let (Some(code), true) = (outgoing.message.pointer_mut("/error/code"), unknown) {
                *code = (-32603).into();
            }
        }),
        Mutant::new("logging.only-when-asked", "logs without a requested level")
            .on_ndjson()
            .map_sent(|outgoing| {
                if answers(outgoing, "talk") {
                    outgoing.before.push(log("info"));
                }
            }),
        Mutant::new("logging.set-level-is-gone", "still supports `logging/setLevel`").map_response_to(
            "logging/setLevel",
            |message| {
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "resultType": "complete" } });
            },
        ),
    ]
}

/// Returns whether a message responds to a call of this tool.
fn answers(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| request["params"]["name"] == tool)
}

fn log(level: &str) -> Value {
    let params = json!({ "level": level, "data": "unrequested" });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

fn reject(message: &mut Value) {
    let error = json!({ "code": -32601, "message": "Method not found" });
    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
