//! Sampling.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientBuilder, LifecycleMode, SamplingRequest};
use turnbuckle_protocol::types::{ContentBlock, CreateMessageResult, StopReason};
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_ndjson::{LEGACY, MockServer},
    turnbuckle::connect,
};

fn echo_client() -> ClientBuilder {
    Client::builder("test", "1").on_sampling(|request: SamplingRequest| async move {
        let text = request.messages[0].content[0].as_text().unwrap_or_default();
        let result = CreateMessageResult::new("parrot", ContentBlock::text(text));
        Ok(result.stop_reason(StopReason::Other("squawked".to_owned())))
    })
}

fn sampling_params() -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "hello" } }],
        "maxTokens": 10,
    })
}

#[tokio::test]
async fn sampling_works_in_both_eras() {
    async fn sample_tool(_: Value, cx: Context) -> Result<String, ToolError> {
        let response = cx
            .sample("greeting", SamplingBuilder::text("hello"))
            .await?;
        Ok(response.text())
    }
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let server = Server::new("asker", "1.0").tool(Tool::raw(
            "ask",
            json!({ "type": "object" }),
            sample_tool,
        ));
        let client = connect(echo_client().lifecycle_mode(era), server).await;

        let output = client.call_tool("ask", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("hello"));
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_is_declared_with_its_subcapabilities() {
    req!(
        "sampling.capability",
        "sampling.capability-modern",
        "sampling.tools.declare",
        "sampling.optional"
    );
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect_with(echo_client().sampling_tools()).await;
        let handshake = server.next("initialize").await;
        // The probe has the newest revision; an older server ignores unknown capabilities.
        assert_eq!(
            handshake["params"]["capabilities"]["sampling"],
            json!({ "tools": {} })
        );
    }
    let server = MockServer::modern();
    server.respond("tools/call", json!({ "content": [] }));
    let client = server.connect_with(echo_client()).await;
    client.call_tool("any", json!({})).await.unwrap();
    let call = server.next("tools/call").await;
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["sampling"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_sampling_result_is_downgraded_for_older_revisions() {
    req!("sampling.result.shape", "sampling.stop-reason");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect_with(echo_client()).await;

        let response = server
            .call_client("sampling/createMessage", sampling_params())
            .await;

        assert_eq!(
            response["result"],
            json!({
                "role": "assistant", "content": { "type": "text", "text": "hello" },
                "model": "parrot", "stopReason": "squawked",
            })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_sampling_request_is_an_error_in_a_session() {
    req!("sampling.error.rejected");
    let server = MockServer::legacy("2025-11-25");
    let refuses = Client::builder("test", "1")
        .on_sampling(|request| async move { Err(request.user_rejected()) });
    let _client = server.connect_with(refuses).await;

    let response = server
        .call_client("sampling/createMessage", sampling_params())
        .await;

    assert_eq!(response["error"]["code"], -1);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_sampling_input_request_ends_the_call() {
    req!("sampling.error.modern");
    let server = MockServer::modern();
    let input_required = json!({ "method": "sampling/createMessage", "params": sampling_params() });
    server.respond(
        "tools/call",
        json!({ "resultType": "input_required", "inputRequests": { "q": input_required } }),
    );
    let refuses = Client::builder("test", "1")
        .on_sampling(|request| async move { Err(request.user_rejected()) });
    let client = server.connect_with(refuses).await;

    let error = client.call_tool("any", json!({})).await.unwrap_err();

    assert!(
        matches!(&error, CallError::InputFailed { source, .. } if source.code == -1),
        "{error}"
    );
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_conversations_and_undeclared_tools_are_rejected() {
    req!("sampling.tools.client-error", "sampling.tool-result.error");
    let server = MockServer::legacy("2025-11-25");
    let _client = server.connect_with(echo_client()).await;
    let with = |member: &str, value: Value| {
        let mut sampling_params = sampling_params();
        sampling_params[member] = value;
        sampling_params
    };
    let unanswered = json!([{ "role": "assistant", "content": { "type": "tool_use", "id": "1", "name": "x", "input": {} } }]);
    for params in [
        with("tools", json!([])),
        with("toolChoice", json!({ "mode": "none" })),
        with("messages", unanswered),
        with("maxTokens", Value::Null),
    ] {
        let response = server
            .call_client("sampling/createMessage", params.clone())
            .await;

        assert_eq!(response["error"]["code"], -32602, "{params}");
    }
}
