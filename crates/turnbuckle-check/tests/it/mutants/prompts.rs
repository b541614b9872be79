//! Prompts: not quite right.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::tools::{early_pages_are_empty, failing, list_in, object_in, undeclared};
use crate::mutant::{Mutant, Saying};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("prompts.capability", "prompts that nobody declares").says(undeclared("prompts")),
        Mutant::new("prompts.capability", "prompts that nobody declares in the handshake")
            .in_revision(Revision::V2025_03_26)
            .says(undeclared("prompts")),
        Mutant::new("prompts.list", "an error instead of the list of prompts")
            .answers("prompts/list", failing),
        Mutant::new("prompts.list-same-for-all", "prompts that are gone on new connections")
            .on_lines()
            .says(early_pages_are_empty("prompts/list", "prompts")),
        Mutant::new("prompts.unknown", "an internal error for a prompt that is not there").says(|saying| {
            if gets(saying, "turnbuckle-no-such-prompt") {
                failing(&mut saying.message);
            }
        }),
        Mutant::new("prompts.missing-arguments", "messages without what they need").says(|saying| {
            if gets(saying, "review") && saying.message["error"]["code"] == -32602 {
                let id = saying.message["id"].clone();
                let hello = json!({ "role": "user", "content": { "type": "text", "text": "Review undefined." } });
                saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "messages": [hello], "resultType": "complete",
                } });
            }
        }),
        Mutant::new("prompts.media-types", "an image of the type `png`").answers("prompts/get", |message| {
            each_content(message, |content| {
                if content["type"] == "image" {
                    content["mimeType"] = "png".into();
                }
            });
        }),
        Mutant::new("prompts.embedded-type", "a resource without a type").answers("prompts/get", |message| {
            each_content(message, |content| {
                if let Some(resource) = object_in(content, "/resource") {
                    resource.remove("mimeType");
                }
            });
        }),
        Mutant::new("prompts.listed-can-be-used", "a prompt that cannot be used").says(|saying| {
            if gets(saying, "greet") {
                failing(&mut saying.message);
            }
        }),
    ]
}

fn gets(saying: &Saying, name: &str) -> bool {
    let gets = |asked: &Value| asked["method"] == "prompts/get" && asked["params"]["name"] == name;
    saying.asked.as_ref().is_some_and(gets)
}

fn each_content(message: &mut Value, mut change: impl FnMut(&mut Value)) {
    let messages = list_in(message, "/result/messages");
    for message in messages.into_iter().flatten() {
        change(&mut message["content"]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
