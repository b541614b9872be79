//! Mutants that mix the eras.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::base::{error, is_response_to};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "eras.handshake-after-modern",
            "no response to a late handshake",
        )
        .on_ndjson()
        .map_received(|incoming| {
            if !incoming.earlier.is_empty() && incoming.message["method"] == "initialize" {
                incoming.message = Value::Null;
            }
        }),
        Mutant::new(
            "eras.initialize-names-versions",
            "no handshake and no versions in the error",
        )
        .map_sent(|outgoing| {
            if is_response_to(outgoing, "initialize") {
                outgoing.message = error(&outgoing.message["id"], -32601);
            }
        }),
        Mutant::new("eras.probe", "no response before the handshake")
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_received(|incoming| {
                if incoming.message["method"] == "server/discover" {
                    incoming.message = Value::Null;
                }
            }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
