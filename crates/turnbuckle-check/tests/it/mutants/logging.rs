//! Log messages: not quite right.

use serde_json::{Value, json};

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("logging.declared", "logs, and does not say so")
            .on_ndjson()
            .map_response_to("server/discover", |message| {
                let capabilities = message.pointer_mut("/result/capabilities");
                if let Some(capabilities) = capabilities.and_then(Value::as_object_mut) {
                    capabilities.remove("logging");
                }
            }),
        Mutant::new("logging.set-level", "declares it, and knows no such method")
            .map_response_to("logging/setLevel", refuse),
        Mutant::new("logging.respects-level", "logs whatever level is set").map_sent(|outgoing| {
            if answers(outgoing, "talk") {
                outgoing.before.push(log("debug"));
            }
        })
        .on_ndjson(),
        Mutant::new("logging.unknown-level", "takes any level").map_response_to(
            "logging/setLevel",
            |message| {
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} });
            },
        )
        .in_revision(turnbuckle_protocol::revision::Revision::V2025_06_18),
        Mutant::new("logging.unknown-level", "takes any level, per request").map_sent(|outgoing| {
            let asked = outgoing.request.as_ref();
            let unknown = asked.is_some_and(|asked| asked["id"] == "check-level");
            if let (Some(code), true) = (outgoing.message.pointer_mut("/error/code"), unknown) {
                *code = (-32603).into();
            }
        }),
        Mutant::new("logging.only-when-asked", "logs for whoever asks for nothing")
            .on_ndjson()
            .map_sent(|outgoing| {
                if answers(outgoing, "talk") {
                    outgoing.before.push(log("info"));
                }
            }),
        Mutant::new("logging.set-level-is-gone", "still lets a level be set").map_response_to(
            "logging/setLevel",
            |message| {
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "resultType": "complete" } });
            },
        ),
    ]
}

/// Says whether a message answers a call of this tool.
fn answers(outgoing: &OutgoingMessage, tool: &str) -> bool {
    let asked = outgoing.request.as_ref();
    asked.is_some_and(|asked| asked["params"]["name"] == tool)
}

fn log(level: &str) -> Value {
    let params = json!({ "level": level, "data": "whether you want it or not" });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

fn refuse(message: &mut Value) {
    let error = json!({ "code": -32601, "message": "Method not found" });
    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
