//! What servers ask the model behind a client.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientBuilder, LifecycleMode, SamplingRequest};
use turnbuckle_protocol::types::{ContentBlock, CreateMessageResult, StopReason};
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::{
    fake_lines::{FakeServer, LEGACY},
    own_server::connect,
};

fn parrot() -> ClientBuilder {
    Client::builder("test", "1").on_sampling(|request: SamplingRequest| async move {
        let said = request.messages[0].content[0].as_text().unwrap_or_default();
        let result = CreateMessageResult::new("parrot", ContentBlock::text(said));
        Ok(result.stop_reason(StopReason::Other("squawked".to_owned())))
    })
}

fn question() -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "hello" } }],
        "maxTokens": 10,
    })
}

#[tokio::test]
async fn a_model_answers_in_both_eras() {
    async fn ask(_: Value, cx: Context) -> Result<String, ToolError> {
        let answer = cx
            .sample("greeting", SamplingBuilder::text("hello"))
            .await?;
        Ok(answer.text())
    }
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let server =
            Server::new("asker", "1.0").tool(Tool::raw("ask", json!({ "type": "object" }), ask));
        let client = connect(parrot().lifecycle_mode(era), server).await;

        let output = client.call_tool("ask", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("hello"));
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_is_declared_with_what_belongs_to_it() {
    req!(
        "sampling.capability",
        "sampling.capability-modern",
        "sampling.tools.declare",
        "sampling.optional"
    );
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let _client = server.connect_as(parrot().sampling_tools()).await;
        let hello = server.next("initialize").await;
        // The request names the newest revision; what an older server does not know it passes over.
        assert_eq!(
            hello["params"]["capabilities"]["sampling"],
            json!({ "tools": {} })
        );
    }
    let server = FakeServer::modern();
    server.answer("tools/call", json!({ "content": [] }));
    let client = server.connect_as(parrot()).await;
    client.call_tool("any", json!({})).await.unwrap();
    let call = server.next("tools/call").await;
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["sampling"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn an_older_server_gets_the_answer_of_the_model() {
    req!("sampling.result.shape", "sampling.stop-reason");
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let _client = server.connect_as(parrot()).await;

        let answer = server.ask("sampling/createMessage", question()).await;

        assert_eq!(
            answer["result"],
            json!({
                "role": "assistant", "content": { "type": "text", "text": "hello" },
                "model": "parrot", "stopReason": "squawked",
            })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_error_where_the_server_waits() {
    req!("sampling.error.rejected");
    let server = FakeServer::legacy("2025-11-25");
    let refuses = Client::builder("test", "1")
        .on_sampling(|request| async move { Err(request.user_rejected()) });
    let _client = server.connect_as(refuses).await;

    let answer = server.ask("sampling/createMessage", question()).await;

    assert_eq!(answer["error"]["code"], -1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_call_where_no_server_waits() {
    req!("sampling.error.modern");
    let server = FakeServer::modern();
    let asks = json!({ "method": "sampling/createMessage", "params": question() });
    server.answer(
        "tools/call",
        json!({ "resultType": "input_required", "inputRequests": { "q": asks } }),
    );
    let refuses = Client::builder("test", "1")
        .on_sampling(|request| async move { Err(request.user_rejected()) });
    let client = server.connect_as(refuses).await;

    let error = client.call_tool("any", json!({})).await.unwrap_err();

    assert!(
        matches!(&error, CallError::InputFailed { source, .. } if source.code == -1),
        "{error}"
    );
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn broken_conversations_and_undeclared_tools_are_refused() {
    req!("sampling.tools.client-error", "sampling.tool-result.error");
    let server = FakeServer::legacy("2025-11-25");
    let _client = server.connect_as(parrot()).await;
    let with = |member: &str, value: Value| {
        let mut question = question();
        question[member] = value;
        question
    };
    let unanswered = json!([{ "role": "assistant", "content": { "type": "tool_use", "id": "1", "name": "x", "input": {} } }]);
    for params in [
        with("tools", json!([])),
        with("toolChoice", json!({ "mode": "none" })),
        with("messages", unanswered),
        with("maxTokens", Value::Null),
    ] {
        let answer = server.ask("sampling/createMessage", params.clone()).await;

        assert_eq!(answer["error"]["code"], -32602, "{params}");
    }
}
