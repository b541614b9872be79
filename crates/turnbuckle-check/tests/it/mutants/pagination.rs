//! Pagination: not quite right.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::tools::failing;
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    let calls = AtomicUsize::new(0);
    vec![
        Mutant::new("pagination.goes-on", "the first page again and again").hears(|hearing| {
            if let Some(params) = hearing.message["params"].as_object_mut() {
                params.remove("cursor");
            }
        }),
        Mutant::new(
            "pagination.stable-cursors",
            "a cursor that moves on by itself",
        )
        .answers("resources/templates/list", move |message| {
            let odd = calls.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            let last = message["result"].get("nextCursor").is_none();
            if odd && last && message["result"]["resourceTemplates"].is_array() {
                message["result"]["resourceTemplates"] = json!([]);
            }
        }),
        Mutant::new(
            "pagination.invalid-cursor",
            "an internal error for a wrong cursor",
        )
        .says(|saying| {
            let asked = saying
                .asked
                .as_ref()
                .map(|asked| &asked["params"]["cursor"]);
            if asked.is_some_and(|cursor| *cursor == "turnbuckle-no-such-cursor") {
                failing(&mut saying.message);
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
