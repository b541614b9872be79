//! Resource mutants.

use serde_json::json;
use turnbuckle_protocol::revision::Revision;

use super::tools::{early_pages_are_empty, failing, list_in, object_in, undeclared};
use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("resources.capability", "undeclared resources")
            .map_sent(undeclared("resources")),
        Mutant::new(
            "resources.list",
            "an error instead of the list of resources",
        )
        .for_requirement("resources.list.respond")
        .map_response_to("resources/list", failing),
        Mutant::new(
            "resources.list-same-for-all",
            "no resources on new connections",
        )
        .on_ndjson()
        .map_sent(early_pages_are_empty("resources/list", "resources")),
        Mutant::new("resources.not-found", "an internal error").map_sent(|outgoing| {
            if reads(outgoing, "turnbuckle-check://") {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new("resources.not-found", "the code of later revisions")
            .in_revision(Revision::V2025_06_18)
            .map_sent(|outgoing| {
                if reads(outgoing, "turnbuckle-check://") {
                    outgoing.message["error"]["code"] = (-32602).into();
                }
            }),
        Mutant::new(
            "resources.not-found-never-empty",
            "empty contents for an unknown resource",
        )
        .map_sent(|outgoing| {
            if reads(outgoing, "turnbuckle-check://") {
                contents(outgoing, &json!([]));
            }
        }),
        Mutant::new(
            "resources.addresses-validated",
            "contents for an invalid URI",
        )
        .map_sent(|outgoing| {
            if reads(outgoing, "not a uri") {
                contents(
                    outgoing,
                    &json!([{ "uri": "good://greeting", "text": "Hello." }]),
                );
            }
        }),
        Mutant::new(
            "resources.listed-can-be-read",
            "a listed resource that fails",
        )
        .map_sent(|outgoing| {
            if reads(outgoing, "good://last") {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new("resources.listed-once", "a resource listed twice").map_response_to(
            "resources/list",
            |message| {
                if let Some(resources) = list_in(message, "/result/resources") {
                    resources.extend_from_within(..1);
                }
            },
        ),
        Mutant::new("resources.type-as-listed", "another MIME type than listed").map_sent(
            |outgoing| {
                if reads(outgoing, "good://greeting")
                    && let Some(part) = object_in(&mut outgoing.message, "/result/contents/0")
                {
                    part.insert("mimeType".into(), "text/markdown".into());
                }
            },
        ),
    ]
}

fn reads(outgoing: &OutgoingMessage, address: &str) -> bool {
    outgoing.request.as_ref().is_some_and(|request| {
        let uri = request["params"]["uri"].as_str();
        request["method"] == "resources/read" && uri.is_some_and(|uri| uri.starts_with(address))
    })
}

fn contents(outgoing: &mut OutgoingMessage, contents: &serde_json::Value) {
    let id = outgoing.message["id"].clone();
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
        "contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    } });
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
