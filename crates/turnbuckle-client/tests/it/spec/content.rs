//! Sampled content, in the form of each revision.

use serde_json::{Value, json};
use turnbuckle_client::Client;
use turnbuckle_protocol::types::{
    Annotations, ContentBlock, CreateMessageResult, JsonObject, Role, TextContent, ToolUseContent,
};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MODERN, MockServer};

/// A block of each type that a model may return.
fn blocks() -> [ContentBlock; 4] {
    let mut text = TextContent::new("text");
    text.annotations = Some(
        Annotations::new()
            .audience(vec![Role::User, Role::Assistant])
            .priority(0.5)
            .last_modified("2025-01-12T15:00:58Z"),
    );
    [
        ContentBlock::Text(text),
        ContentBlock::image("iVBORw0KGgo=", "image/png"),
        ContentBlock::audio("UklGRg==", "audio/wav"),
        ContentBlock::ToolUse(ToolUseContent::new("1", "forecast", JsonObject::new())),
    ]
}

/// Returns what a server of the revision receives for this content.
async fn sampled(revision: &str, block: ContentBlock) -> Value {
    let server = MockServer::for_revision(revision);
    let client = Client::builder("model", "1")
        .sampling_tools()
        .on_sampling(move |_| {
            let result = CreateMessageResult::new("m", block.clone());
            async move { Ok(result) }
        });
    let client = server.connect_with(client).await;
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let mut params = json!({ "messages": [message], "maxTokens": 10 });
    if revision >= "2025-11-25" {
        params["tools"] = json!([{ "name": "forecast", "inputSchema": { "type": "object" } }]);
    }
    if revision != MODERN {
        return server.call_client("sampling/createMessage", params).await;
    }
    // The input request is part of a result, and the response part of the next request.
    let input_request = json!({ "method": "sampling/createMessage", "params": params });
    let input_required =
        json!({ "resultType": "input_required", "inputRequests": { "q": input_request } });
    server.respond_in_order("tools/call", [input_required, json!({ "content": [] })]);
    client.call_tool("ask", json!({})).await.unwrap();
    server.next("tools/call").await;
    let mut again = server.next("tools/call").await;
    json!({ "result": again["params"]["inputResponses"]["q"].take() })
}

/// Returns the blocks of a result: one or, since 2025-11-25, possibly several.
fn content(response: &Value) -> Vec<Value> {
    match &response["result"]["content"] {
        Value::Array(blocks) => blocks.clone(),
        Value::Null => Vec::new(),
        block => vec![block.clone()],
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_gets_only_content_types_of_its_revision() {
    req!("content.types.by-revision");
    for revision in EVERY {
        let mut known = vec!["text", "image"];
        known.extend((revision >= "2025-03-26").then_some("audio"));
        known.extend((revision >= "2025-11-25").then_some("tool_use"));
        for block in blocks() {
            let response = sampled(revision, block.clone()).await;

            let kind = serde_json::to_value(&block).unwrap()["type"].take();
            let given = content(&response);
            for block in &given {
                let kind = block["type"].as_str().unwrap();
                assert!(known.contains(&kind), "{revision}: {response}");
            }
            if known.contains(&kind.as_str().unwrap()) {
                assert_eq!(given[0]["type"], kind, "{revision}: {response}");
            } else {
                let sent = response.get("error").is_some() || !given.is_empty();
                assert!(sent, "{revision}: nothing is lost in silence: {response}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn images_and_audio_are_base64_with_a_mime_type() {
    req!("content.binary.base64");
    let [_, image, audio, _] = blocks();
    for revision in EVERY {
        let response = sampled(revision, image.clone()).await;
        let block = &content(&response)[0];
        assert_eq!(block["data"], "iVBORw0KGgo=", "{revision}");
        assert_eq!(block["mimeType"], "image/png");
    }
    for revision in EVERY.into_iter().filter(|it| *it >= "2025-03-26") {
        let response = sampled(revision, audio.clone()).await;
        let block = &content(&response)[0];
        assert_eq!(block["data"], "UklGRg==", "{revision}");
        assert_eq!(block["mimeType"], "audio/wav");
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_are_those_of_the_revision() {
    req!("content.annotations.values");
    let [text, ..] = blocks();
    for revision in EVERY {
        let response = sampled(revision, text.clone()).await;

        let hints = &content(&response)[0]["annotations"];
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
