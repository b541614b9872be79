//! Content blocks, in every revision.

use serde_json::{Value, json};
use turnbuckle_protocol::types::{
    Annotations, BlobResourceContents, ContentBlock, PromptMessage, Resource as Link, Role,
    TextContent, TextResourceContents,
};
use turnbuckle_server::{Prompt, Resource, Server, Tool, ToolResult};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, RevisionClient};

/// A block of each kind.
fn blocks() -> Vec<ContentBlock> {
    let mut text = TextContent::new("text");
    text.annotations = Some(
        Annotations::new()
            .audience(vec![Role::User, Role::Assistant])
            .priority(0.5)
            .last_modified("2025-01-12T15:00:58Z"),
    );
    let mut embedded = TextResourceContents::new("note://a", "A");
    embedded.mime_type = Some("text/plain".to_owned());
    let mut blob = BlobResourceContents::new("note://b", "AAEC");
    blob.mime_type = Some("application/octet-stream".to_owned());
    vec![
        ContentBlock::Text(text),
        ContentBlock::image("iVBORw0KGgo=", "image/png"),
        ContentBlock::audio("UklGRg==", "audio/wav"),
        ContentBlock::resource(embedded),
        ContentBlock::resource(blob),
        ContentBlock::ResourceLink(Link::new("note://a", "a")),
    ]
}

fn server() -> Server {
    let show = Tool::new("show", async || Ok(ToolResult::from(blocks())));
    let tell = Prompt::new("tell", async || {
        let messages: Vec<_> = blocks().into_iter().map(PromptMessage::user).collect();
        Ok(messages)
    });
    let chat = Prompt::new("chat", async || {
        Ok(vec![
            PromptMessage::user("question"),
            PromptMessage::assistant("answer"),
        ])
    });
    Server::new("content", "1")
        .tool(show)
        .prompt(tell)
        .prompt(chat)
        .resource(Resource::text("note://a", "a", "A"))
        .resource(Resource::bytes(
            "note://b",
            "b",
            "application/octet-stream",
            vec![0, 1, 2],
        ))
}

/// The blocks of a tool result and of a prompt.
async fn shown(revision: &'static str) -> [Vec<Value>; 2] {
    let mut client = RevisionClient::new(revision, server()).await;
    let result = client.tool("show", json!({})).await;
    let prompt = client
        .result("prompts/get", json!({ "name": "tell" }))
        .await;
    let messages = prompt["messages"].as_array().unwrap();
    [
        result["content"].as_array().unwrap().clone(),
        messages
            .iter()
            .map(|message| message["content"].clone())
            .collect(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_peer_gets_only_content_types_of_its_revision() {
    req!("content.types.by-revision");
    for revision in EVERY {
        let mut known = vec!["text", "image", "resource"];
        known.extend((revision >= "2025-03-26").then_some("audio"));
        known.extend((revision >= "2025-06-18").then_some("resource_link"));
        for blocks in shown(revision).await {
            assert_eq!(blocks.len(), 6, "{revision}");
            for block in &blocks {
                let kind = block["type"].as_str().unwrap();
                assert!(known.contains(&kind), "{revision} {block}");
            }
            for kind in known.iter().filter(|kind| **kind != "text") {
                assert!(
                    blocks.iter().any(|block| block["type"] == *kind),
                    "{revision} {kind}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pictures_and_sound_are_base64_with_their_type() {
    req!(
        "content.binary.base64",
        "prompts.content.image",
        "prompts.content.audio"
    );
    for revision in EVERY {
        for blocks in shown(revision).await {
            let find = |kind: &str| blocks.iter().find(|block| block["type"] == kind);
            let image = find("image").unwrap();
            assert_eq!(image["data"], "iVBORw0KGgo=");
            assert_eq!(image["mimeType"], "image/png");
            if revision >= "2025-03-26" {
                let audio = find("audio").unwrap();
                assert_eq!(audio["data"], "UklGRg==", "{revision}");
                assert_eq!(audio["mimeType"], "audio/wav");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resources_may_be_embedded_and_linked() {
    req!(
        "prompts.content.embedded",
        "prompts.content.link",
        "tools.result.embedded-old",
        "tools.result.embedded",
        "tools.result.resource-link"
    );
    for revision in EVERY {
        for blocks in shown(revision).await {
            assert_eq!(
                blocks[3]["resource"],
                json!({ "uri": "note://a", "mimeType": "text/plain", "text": "A" }),
                "{revision}"
            );
            assert_eq!(
                blocks[4]["resource"],
                json!({ "uri": "note://b", "mimeType": "application/octet-stream", "blob": "AAEC" }),
                "{revision}"
            );
            if revision >= "2025-06-18" {
                assert_eq!(blocks[5]["uri"], "note://a", "{revision}");
                assert_eq!(blocks[5]["name"], "a");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hints_about_content_are_those_of_the_revision() {
    req!("content.annotations.values");
    for revision in EVERY {
        for blocks in shown(revision).await {
            let hints = &blocks[0]["annotations"];
            assert_eq!(
                hints["audience"],
                json!(["user", "assistant"]),
                "{revision}"
            );
            assert_eq!(hints["priority"], 0.5, "{revision}");
            let modified = (revision >= "2025-06-18").then(|| json!("2025-01-12T15:00:58Z"));
            assert_eq!(hints.get("lastModified").cloned(), modified, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_messages_of_two_roles_with_one_block_each() {
    req!("prompts.get.shape");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let prompt = client
            .result("prompts/get", json!({ "name": "chat" }))
            .await;

        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(
            prompt["messages"],
            json!([
                { "role": "user", "content": text("question") },
                { "role": "assistant", "content": text("answer") },
            ]),
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_read_as_text_or_as_base64() {
    req!("resources.read.shape", "resources.security.encode-binary");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let text = client
            .result("resources/read", json!({ "uri": "note://a" }))
            .await;
        let blob = client
            .result("resources/read", json!({ "uri": "note://b" }))
            .await;

        assert_eq!(
            text["contents"],
            json!([{ "uri": "note://a", "mimeType": "text/plain", "text": "A" }]),
            "{revision}"
        );
        assert_eq!(
            blob["contents"],
            json!([{ "uri": "note://b", "mimeType": "application/octet-stream", "blob": "AAEC" }]),
            "{revision}"
        );
    }
}
