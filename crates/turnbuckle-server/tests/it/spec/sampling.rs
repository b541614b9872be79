//! Sampling with tools.

use serde_json::json;
use turnbuckle_protocol::types::{
    ContentBlock, Role, SamplingMessage, ToolResultContent, ToolUseContent,
};
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::spec::{
    client_requests::{call, everything, sent_client_requests, server},
    revision_client::{EVERY, MODERN, RevisionClient},
};

#[tokio::test(start_paused = true)]
async fn sampling_with_tools_requires_the_declared_capability() {
    req!("sampling.tools.server");
    for revision in ["2025-11-25", MODERN] {
        let mut plain = RevisionClient::with(revision, server(), json!({ "sampling": {} })).await;
        let mut able = RevisionClient::with(revision, server(), everything()).await;

        let refused = plain.call("tools/call", call("tools")).await;
        let client_request = sent_client_requests(&mut able, call("tools"))
            .await
            .remove(0);

        assert!(
            refused["error"]["code"] == -32021 || refused["result"]["isError"] == true,
            "{revision} {refused}"
        );
        plain.peer.expect_no_message().await;
        assert_eq!(
            client_request["params"]["tools"][0]["name"], "t",
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampling_request_has_messages_and_max_tokens() {
    req!("sampling.max-tokens.required", "sampling.message.shape");
    for revision in EVERY {
        let mut client = RevisionClient::with(revision, server(), everything()).await;

        let client_request = sent_client_requests(&mut client, call("think"))
            .await
            .remove(0);

        assert_eq!(
            client_request["method"], "sampling/createMessage",
            "{revision}"
        );
        assert_eq!(client_request["params"]["maxTokens"], 1_000, "{revision}");
        let messages = client_request["params"]["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{revision}");
        assert_eq!(messages[0]["role"], "user", "{revision}");
        let content = &messages[0]["content"];
        assert_eq!(
            (&content["type"], &content["text"]),
            (&json!("text"), &json!("Think!"))
        );
    }
}

fn used(id: &str) -> ContentBlock {
    ContentBlock::ToolUse(ToolUseContent::new(id, "t", serde_json::Map::new()))
}

fn gave(id: &str) -> ContentBlock {
    ContentBlock::ToolResult(ToolResultContent::new(id, [ContentBlock::text("done")]))
}

/// Sends a sampling request with messages, and returns whether it reached the client.
async fn goes_on(revision: &'static str, messages: Vec<(Role, Vec<ContentBlock>)>) -> bool {
    let tool = Tool::new("go", move |cx: Context| {
        let messages: Vec<_> = messages
            .iter()
            .map(|(role, blocks)| SamplingMessage::with_blocks(*role, blocks.clone()))
            .collect();
        async move {
            let said = cx
                .sample("s", SamplingBuilder::messages(messages, 10))
                .await?;
            Ok(said.model)
        }
    });
    let server = Server::new("talk", "1").tool(tool);
    let mut client = RevisionClient::with(revision, server, everything()).await;
    client.request("tools/call", call("go")).await;
    let message = client.peer.next().await;
    message["result"]["isError"] != true
}

#[tokio::test(start_paused = true)]
async fn every_tool_use_is_followed_only_by_its_result() {
    req!(
        "sampling.tool-result.only",
        "sampling.tool-result.balance",
        "sampling.tool-result.match"
    );
    let text = || ContentBlock::text("text");
    let (user, model) = (Role::User, Role::Assistant);
    for revision in ["2025-11-25", MODERN] {
        for good in [
            vec![(user, vec![text()])],
            vec![
                (user, vec![text()]),
                (model, vec![text(), used("a")]),
                (user, vec![gave("a")]),
            ],
            vec![
                (model, vec![used("a"), used("b")]),
                (user, vec![gave("b"), gave("a")]),
            ],
        ] {
            assert!(goes_on(revision, good.clone()).await, "{good:?}");
        }
        for bad in [
            vec![(user, vec![gave("a")])],
            vec![(model, vec![used("a")])],
            vec![(model, vec![used("a")]), (user, vec![text()])],
            vec![(model, vec![used("a")]), (user, vec![gave("a"), text()])],
            vec![(model, vec![used("a")]), (user, vec![gave("b")])],
            vec![(model, vec![used("a"), used("b")]), (user, vec![gave("a")])],
            vec![(model, vec![used("a")]), (user, vec![gave("a"), gave("a")])],
            vec![(model, vec![used("a")]), (model, vec![gave("a")])],
            vec![
                (model, vec![used("a")]),
                (user, vec![text()]),
                (user, vec![gave("a")]),
            ],
        ] {
            assert!(!goes_on(revision, bad.clone()).await, "{bad:?}");
        }
    }
}
