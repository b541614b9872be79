//! Messages of JSON-RPC that are not quite right.

use super::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.base.json-rpc", "an older version of JSON-RPC")
            .asks("tools/list", |message| message["jsonrpc"] = "1.0".into()),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
