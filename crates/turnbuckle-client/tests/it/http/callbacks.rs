//! Elicitation, sampling, roots and tasks on HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::{
    CallOutcome, Client, ClientBuilder, ElicitationAction, FormRequest, LifecycleMode, Roots,
    http::HttpTarget,
};
use turnbuckle_protocol::types::{
    ContentBlock, CreateMessageResult,
    elicitation::{ElicitSchema, StringSchema},
};
use turnbuckle_server::{
    Context, Elicitation, SamplingBuilder, Server, TaskSupport, Tool, ToolError,
    http::{self as server_http, HttpSse},
};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::MockResponse,
    mock_mcp_http::{self, MODERN, posted_messages},
};

/// A tool that sends every client request.
async fn use_all_callbacks(_: Value, cx: Context) -> Result<String, ToolError> {
    let form = ElicitSchema::new().required("name", StringSchema::new());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let name = cx
        .elicit(Elicitation::raw_form("who?", form).key("name"))
        .await?;
    let name = name
        .accepted()
        .map_or(Value::Null, |content| content["name"].clone());
    let sent = cx
        .sample("word", SamplingBuilder::text("say a word"))
        .await?;
    let roots = cx.roots("roots").await?;
    Ok(format!(
        "{} {} {}",
        name.as_str().unwrap_or("unknown"),
        sent.text(),
        roots[0].uri
    ))
}

fn server() -> Server {
    let schema = || json!({ "type": "object" });
    Server::new("asker", "1.0")
        .tool(Tool::raw("ask", schema(), use_all_callbacks))
        .tool(Tool::raw("ask-later", schema(), use_all_callbacks).task(TaskSupport::Optional))
}

fn at(server: Server, path: &str) -> HttpTarget {
    let (connector, listener) = server_http::memory();
    let http = server_http::Http::new(server)
        .allow_host("own.test")
        .http_sse(HttpSse::new());
    tokio::spawn(http.serve(listener));
    HttpTarget::new(format!("http://own.test{path}")).connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    })
}

fn client_with_callbacks(era: LifecycleMode) -> ClientBuilder {
    Client::builder("test", "1")
        .lifecycle_mode(era)
        .roots(Roots::new(["file:///a"]).unwrap())
        .on_form_elicitation(
            |form: FormRequest| async move { form.accept(json!({ "name": "Ada" })) },
        )
        .on_url_elicitation(|_| async { ElicitationAction::Accept })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("m", ContentBlock::text("tea"))) })
}

const MODES: [(LifecycleMode, &str); 3] = [
    (LifecycleMode::Modern, "/mcp"),
    (LifecycleMode::Legacy, "/mcp"),
    (LifecycleMode::Legacy, "/sse"),
];

#[tokio::test(start_paused = true)]
async fn a_call_returns_after_its_input_requests_are_resolved() {
    for (era, path) in MODES {
        let client = client_with_callbacks(era)
            .connect(at(server(), path))
            .await
            .unwrap();

        let output = client.call_tool("ask", json!({})).await.unwrap();

        assert_eq!(output.text(), "Ada tea file:///a", "{era:?} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_returns_after_its_input_requests_are_resolved() {
    req!("tasks.http.comply", "tasks.http.any-stream");
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let client = client_with_callbacks(era)
            .connect(at(server(), "/mcp"))
            .await
            .unwrap();
        let started = client
            .call_tool_as_task("ask-later", json!({}))
            .await
            .unwrap();
        assert!(matches!(started, CallOutcome::Task(_)), "{started:?}");

        let output = started.result().await.unwrap();

        assert_eq!(output.text(), "Ada tea file:///a", "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_requests_have_the_task_id_in_the_name_header() {
    req!("ext-tasks.http.mcp-name");
    let task = |status: &str, more: Value| {
        let mut task = json!({
            "resultType": "complete", "taskId": "t-1 é", "status": status, "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null,
        });
        let Value::Object(more) = more else {
            panic!("members to add");
        };
        task.as_object_mut().unwrap().extend(more);
        task
    };
    let input_request = json!({
        "method": "elicitation/create",
        "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
    });
    let mock = mock_mcp_http::server(MODERN, move |request| {
        let result = match request.rpc().as_str() {
            "tools/call" => task("working", json!({ "resultType": "task" })),
            "tasks/get" => task(
                "input_required",
                json!({ "inputRequests": { "q": input_request } }),
            ),
            "tasks/update" | "tasks/cancel" => json!({ "resultType": "complete" }),
            _ => return None,
        };
        Some(MockResponse::result(request, &result))
    });
    let builder = mock_mcp_http::builder_for(MODERN)
        .on_form_elicitation(|form| async move { form.decline() });
    let client = builder
        .connect(mock_mcp_http::target_of(&mock))
        .await
        .unwrap();
    let CallOutcome::Task(task) = client.call_tool_as_task("work", json!({})).await.unwrap() else {
        panic!("a task");
    };

    let waited = tokio::time::timeout(Duration::from_secs(5), task.wait()).await;
    task.cancel().await.unwrap();

    assert!(waited.is_err(), "the task never ends");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = posted_messages(&mock, method);
        assert!(!request.is_empty(), "{method}");
        for request in request {
            assert_eq!(request.header("mcp-method"), method);
            assert_eq!(request.header("mcp-name"), "=?base64?dC0xIMOp?=");
        }
    }
}
