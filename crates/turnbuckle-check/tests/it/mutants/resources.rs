//! Resources: not quite right.

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

use super::tools::{early_pages_are_empty, failing, list_in, object_in, undeclared};
use crate::mutant::{Mutant, Saying};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("resources.capability", "resources that nobody declares")
            .says(undeclared("resources")),
        Mutant::new(
            "resources.list",
            "an error instead of the list of resources",
        )
        .answers("resources/list", failing),
        Mutant::new(
            "resources.list-same-for-all",
            "resources that are gone on new connections",
        )
        .on_lines()
        .says(early_pages_are_empty("resources/list", "resources")),
        Mutant::new("resources.not-found", "an internal error").says(|saying| {
            if reads(saying, "turnbuckle-check://") {
                saying.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new("resources.not-found", "the code of newer revisions")
            .in_revision(Revision::V2025_06_18)
            .says(|saying| {
                if reads(saying, "turnbuckle-check://") {
                    saying.message["error"]["code"] = (-32602).into();
                }
            }),
        Mutant::new(
            "resources.not-found-never-empty",
            "nothing for what is not there",
        )
        .says(|saying| {
            if reads(saying, "turnbuckle-check://") {
                contents(saying, &json!([]));
            }
        }),
        Mutant::new(
            "resources.addresses-validated",
            "a text for whatever is asked for",
        )
        .says(|saying| {
            if reads(saying, "this is no address") {
                contents(
                    saying,
                    &json!([{ "uri": "good://greeting", "text": "Hello." }]),
                );
            }
        }),
        Mutant::new(
            "resources.listed-can-be-read",
            "a resource that cannot be read",
        )
        .says(|saying| {
            if reads(saying, "good://last") {
                failing(&mut saying.message);
            }
        }),
        Mutant::new("resources.listed-once", "a resource that is listed twice").answers(
            "resources/list",
            |message| {
                if let Some(resources) = list_in(message, "/result/resources") {
                    resources.extend_from_within(..1);
                }
            },
        ),
        Mutant::new(
            "resources.type-as-listed",
            "another type than the list says",
        )
        .says(|saying| {
            if reads(saying, "good://greeting")
                && let Some(part) = object_in(&mut saying.message, "/result/contents/0")
            {
                part.insert("mimeType".into(), "text/markdown".into());
            }
        }),
    ]
}

fn reads(saying: &Saying, address: &str) -> bool {
    saying.asked.as_ref().is_some_and(|asked| {
        let uri = asked["params"]["uri"].as_str();
        asked["method"] == "resources/read" && uri.is_some_and(|uri| uri.starts_with(address))
    })
}

fn contents(saying: &mut Saying, contents: &serde_json::Value) {
    let id = saying.message["id"].clone();
    saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
        "contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    } });
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
