//! Completion: not quite right.

use serde_json::json;

use super::tools::{failing, object_in, undeclared};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    let complete = "completion/complete";
    vec![
        Mutant::new("completion.capability", "completion that nobody declares")
            .says(undeclared("completions")),
        Mutant::new(
            "completion.unsupported",
            "an internal error where nothing is completed",
        )
        .says(move |saying| {
            undeclared("completions")(saying);
            if saying
                .asked
                .as_ref()
                .is_some_and(|asked| asked["method"] == complete)
            {
                failing(&mut saying.message);
            }
        }),
        Mutant::new(
            "completion.unsupported",
            "no values at all where nothing is completed",
        )
        .says(move |saying| {
            undeclared("completions")(saying);
            if saying
                .asked
                .as_ref()
                .is_some_and(|asked| asked["method"] == complete)
            {
                let id = saying.message["id"].clone();
                saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "completion": { "values": [] }, "resultType": "complete",
                } });
            }
        }),
        Mutant::new(
            "completion.unknown-prompt",
            "no values for a prompt that is not there",
        )
        .says(move |saying| {
            let asked = saying
                .asked
                .as_ref()
                .map(|asked| &asked["params"]["ref"]["name"]);
            if asked.is_some_and(|name| *name == "turnbuckle-no-such-prompt") {
                let id = saying.message["id"].clone();
                saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "completion": { "values": [] }, "resultType": "complete",
                } });
            }
        }),
        Mutant::new(
            "completion.missing-argument",
            "an internal error without an argument",
        )
        .says(move |saying| {
            let missing = saying.asked.as_ref().is_some_and(|asked| {
                asked["method"] == complete && asked["params"].get("argument").is_none()
            });
            if missing {
                failing(&mut saying.message);
            }
        }),
        Mutant::new("completion.has-more", "a part that is said to be all").answers(
            complete,
            |message| {
                if let Some(completion) = object_in(message, "/result/completion") {
                    completion.insert("total".into(), 1_000.into());
                    completion.insert("hasMore".into(), false.into());
                }
            },
        ),
        Mutant::new(
            "completion.typed-matters",
            "the same values whatever is typed",
        )
        .hears(move |hearing| {
            if hearing.message["method"] == complete
                && hearing.message["params"]["argument"].is_object()
            {
                hearing.message["params"]["argument"]["value"] = "".into();
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
