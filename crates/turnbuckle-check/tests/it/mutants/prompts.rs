//! Prompt mutants.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::tools::{early_pages_are_empty, failing, list_in, object_in, undeclared};
use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("prompts.capability", "undeclared prompts").map_sent(undeclared("prompts")),
        Mutant::new("prompts.capability", "undeclared prompts in the handshake")
            .in_revision(Revision::V2025_03_26)
            .map_sent(undeclared("prompts")),
        Mutant::new("prompts.list", "an error instead of the list of prompts")
            .map_response_to("prompts/list", failing),
        Mutant::new("prompts.list-same-for-all", "no prompts on new connections")
            .on_ndjson()
            .map_sent(early_pages_are_empty("prompts/list", "prompts")),
        Mutant::new("prompts.unknown", "an internal error for an unknown prompt").map_sent(|outgoing| {
            if gets(outgoing, "turnbuckle-no-such-prompt") {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new("prompts.missing-arguments", "accepts missing arguments").for_requirement("prompts.error.missing-arguments").map_sent(|outgoing| {
            if gets(outgoing, "review") && outgoing.message["error"]["code"] == -32602 {
                let id = outgoing.message["id"].clone();
                let hello = json!({ "role": "user", "content": { "type": "text", "text": "Review undefined." } });
                outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "messages": [hello], "resultType": "complete",
                } });
            }
        }),
        Mutant::new("prompts.media-types", "an image of the type `png`").for_requirement("prompts.content.image").map_response_to("prompts/get", |message| {
            each_content(message, |content| {
                if content["type"] == "image" {
                    content["mimeType"] = "png".into();
                }
            });
        }),
        Mutant::new("prompts.embedded-type", "a resource without a type").map_response_to("prompts/get", |message| {
            each_content(message, |content| {
                if let Some(resource) = object_in(content, "/resource") {
                    resource.remove("mimeType");
                }
            });
        }),
        Mutant::new("prompts.listed-can-be-used", "a listed prompt that fails").map_sent(|outgoing| {
            if gets(outgoing, "greet") {
                failing(&mut outgoing.message);
            }
        }),
    ]
}

fn gets(outgoing: &OutgoingMessage, name: &str) -> bool {
    let gets =
        |request: &Value| request["method"] == "prompts/get" && request["params"]["name"] == name;
    outgoing.request.as_ref().is_some_and(gets)
}

fn each_content(message: &mut Value, mut change: impl FnMut(&mut Value)) {
    let messages = list_in(message, "/result/messages");
    for message in messages.into_iter().flatten() {
        change(&mut message["content"]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
