//! Completion mutants.

use serde_json::json;

use super::tools::{failing, object_in, undeclared};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    let complete = "completion/complete";
    vec![
        Mutant::new("completion.capability", "undeclared completion")
            .map_sent(undeclared("completions")),
        Mutant::new(
            "completion.unsupported",
            "an internal error without completion support",
        )
        .map_sent(move |outgoing| {
            undeclared("completions")(outgoing);
            if outgoing
                .request
                .as_ref()
                .is_some_and(|request| request["method"] == complete)
            {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new(
            "completion.unsupported",
            "an empty result without completion support",
        )
        .map_sent(move |outgoing| {
            undeclared("completions")(outgoing);
            if outgoing
                .request
                .as_ref()
                .is_some_and(|request| request["method"] == complete)
            {
                let id = outgoing.message["id"].clone();
                outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "completion": { "values": [] }, "resultType": "complete",
                } });
            }
        }),
        Mutant::new(
            "completion.unknown-prompt",
            "an empty result for an unknown prompt",
        )
        .map_sent(move |outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["ref"]["name"]);
            if request.is_some_and(|name| *name == "turnbuckle-no-such-prompt") {
                let id = outgoing.message["id"].clone();
                outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "completion": { "values": [] }, "resultType": "complete",
                } });
            }
        }),
        Mutant::new(
            "completion.missing-argument",
            "an internal error without an argument",
        )
        .map_sent(move |outgoing| {
            let missing = outgoing.request.as_ref().is_some_and(|request| {
                request["method"] == complete && request["params"].get("argument").is_none()
            });
            if missing {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new("completion.has-more", "`hasMore` is false for a part").map_response_to(
            complete,
            |message| {
                if let Some(completion) = object_in(message, "/result/completion") {
                    completion.insert("total".into(), 1_000.into());
                    completion.insert("hasMore".into(), false.into());
                }
            },
        ),
        Mutant::new("completion.typed-matters", "ignores the typed text").map_received(
            move |incoming| {
                if incoming.message["method"] == complete
                    && incoming.message["params"]["argument"].is_object()
                {
                    incoming.message["params"]["argument"]["value"] = "".into();
                }
            },
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
