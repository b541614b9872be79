//! Old and new clients at one server: not quite right.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::base::{asked, error};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "eras.handshake-after-modern",
            "silence for a late handshake",
        )
        .on_lines()
        .hears(|hearing| {
            if !hearing.earlier.is_empty() && hearing.message["method"] == "initialize" {
                hearing.message = Value::Null;
            }
        }),
        Mutant::new(
            "eras.initialize-names-versions",
            "no handshake, and no hint",
        )
        .says(|saying| {
            if asked(saying, "initialize") {
                saying.message = error(&saying.message["id"], -32601);
            }
        }),
        Mutant::new("eras.probe", "silence for what comes before the handshake")
            .on_lines()
            .in_revision(Revision::V2025_11_25)
            .hears(|hearing| {
                if hearing.message["method"] == "server/discover" {
                    hearing.message = Value::Null;
                }
            }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
