//! Robustness mutants.

use serde_json::{Map, Value};

use crate::mutant::{IncomingMessage, Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("robustness.odd-json", "silent after a duplicate name")
            .on_ndjson()
            .map_received(|incoming| silent_after(incoming, "a duplicate name")),
        Mutant::new("robustness.long-text", "silent after a long string")
            .on_ndjson()
            .map_received(|incoming| silent_after(incoming, "a long string")),
        Mutant::new("robustness.odd-names", "no response to an empty name")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.message["params"]["name"] == "" {
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("robustness.goes-on", "silent after an empty object")
            .on_ndjson()
            .map_received(|incoming| {
                let empty = |message: &Value| message.as_object().is_some_and(Map::is_empty);
                if incoming.earlier.iter().any(empty) {
                    incoming.message = Value::Null;
                }
            }),
        Mutant::new("robustness.stray-response", "answers responses")
            .on_ndjson()
            .in_revision(turnbuckle_protocol::revision::Revision::V2025_11_25)
            .map_received(|incoming| {
                if incoming.message["id"] == "never-sent" {
                    incoming.response = Some(super::base::error(&Value::Null, -32600));
                }
            }),
    ]
}

/// Ignores all messages after this id.
fn silent_after(incoming: &mut IncomingMessage, id: &str) {
    if incoming.earlier.iter().any(|message| message["id"] == id) {
        incoming.message = Value::Null;
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
