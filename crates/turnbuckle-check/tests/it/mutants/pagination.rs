//! Pagination mutants.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::tools::{failing, list_in, object_in};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    let calls = AtomicUsize::new(0);
    vec![
        Mutant::new("pagination.goes-on", "always the first page").map_received(|incoming| {
            if let Some(params) = object_in(&mut incoming.message, "/params") {
                params.remove("cursor");
            }
        }),
        Mutant::new("pagination.goes-on", "an error for a valid cursor").map_sent(|outgoing| {
            let request = outgoing.request.as_ref();
            let next = request.is_some_and(|request| {
                request["method"] == "tools/list" && request["params"]["cursor"].is_string()
            });
            if next {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new("pagination.stable-cursors", "another page each time").map_response_to(
            "tools/list",
            move |message| {
                let odd = calls.fetch_add(1, Ordering::Relaxed) % 2 == 1;
                if let (true, Some(tools)) = (odd, list_in(message, "/result/tools")) {
                    tools.reverse();
                }
            },
        ),
        Mutant::new(
            "pagination.invalid-cursor",
            "an internal error for an invalid cursor",
        )
        .for_requirement("pagination.server.invalid-code")
        .map_sent(|outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["cursor"]);
            if request.is_some_and(|cursor| *cursor == "turnbuckle-no-such-cursor") {
                failing(&mut outgoing.message);
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
