//! Messages of JSON-RPC that are not quite right.

use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "base.unknown-method",
            "an internal error for an unknown method",
        )
        .says(|saying| {
            if saying.message["error"]["code"] == -32601 {
                saying.message["error"]["code"] = (-32603).into();
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
