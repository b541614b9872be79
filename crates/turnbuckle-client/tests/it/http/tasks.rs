//! Task requests over HTTP.

use std::future::IntoFuture;

use serde_json::{Value, json};
use turnbuckle_client::{CallOutcome, Client, Task};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{LATEST_LEGACY, MODERN, builder_for, posted_messages, server, target_of},
};

const ID: &str = "786512e2 \u{e9}";

fn task(status: &str) -> Value {
    json!({
        "taskId": ID, "status": status, "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "ttl": null,
        "pollIntervalMs": 1000, "pollInterval": 1000,
    })
}

fn with(mut task: Value, more: Value) -> Value {
    let (Value::Object(members), Value::Object(more)) = (&mut task, more) else {
        panic!("members to add");
    };
    members.extend(more);
    task
}

/// A server of 2026-07-28 with a tool that becomes a task, which never ends and requires input.
fn modern() -> MockHttpServer {
    modern_with(|request| {
        let input_request = json!({ "method": "roots/list", "params": {} });
        let more = json!({ "resultType": "complete", "inputRequests": { "q": input_request } });
        MockResponse::result(request, &with(task("input_required"), more))
    })
}

/// The same, with other responses to `tasks/get`.
fn modern_with(
    get: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
) -> MockHttpServer {
    server(MODERN, move |request| {
        let result = match request.rpc().as_str() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": [MODERN],
                "capabilities": {
                    "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
                },
                "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/call" => with(task("working"), json!({ "resultType": "task" })),
            "tasks/get" => return Some(get(request)),
            "tasks/update" | "tasks/cancel" => json!({ "resultType": "complete" }),
            _ => return None,
        };
        Some(MockResponse::result(request, &result))
    })
}

async fn start_task(client: &Client) -> Task {
    match client.call_tool_as_task("work", json!({})).await.unwrap() {
        CallOutcome::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn task_requests_have_the_task_id_in_the_name_header() {
    req!("ext-tasks.http.mcp-name");
    let mock = modern();
    let client = builder_for(MODERN).connect(target_of(&mock)).await.unwrap();
    let task = start_task(&client).await;

    task.poll().await.unwrap();
    let responses = json!({ "q": { "roots": [] } });
    let responses = serde_json::from_value(responses).unwrap();
    task.send_input(responses).await.unwrap();
    task.cancel().await.unwrap();

    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = posted_messages(&mock, method);
        let request = request.first().expect(method);
        assert_eq!(request.header("mcp-method"), method);
        // Encoded like every name that is not ASCII.
        assert_eq!(
            request.header("mcp-name"),
            "=?base64?Nzg2NTEyZTIgw6k=?=",
            "{method}"
        );
        assert_eq!(request.json()["params"]["taskId"], ID);
    }
}

/// A server of 2025-11-25 with a tool that requires a task, which is complete at the second poll.
fn legacy() -> MockHttpServer {
    server(LATEST_LEGACY, |request: &RecordedRequest| {
        let result = match request.rpc().as_str() {
            "initialize" => {
                let result = json!({
                    "protocolVersion": LATEST_LEGACY,
                    "capabilities": {
                        "tools": {},
                        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
                    },
                    "serverInfo": { "name": "fake", "version": "1" },
                });
                return Some(
                    MockResponse::result(request, &result).header("Mcp-Session-Id", "session-1"),
                );
            }
            "tools/list" => json!({ "tools": [{
                "name": "work", "inputSchema": { "type": "object" },
                "execution": { "taskSupport": "required" },
            }] }),
            "tools/call" => json!({ "task": task("working") }),
            "tasks/get" => task("completed"),
            "tasks/result" => json!({ "content": [{ "type": "text", "text": "done" }] }),
            _ => return None,
        };
        Some(MockResponse::result(request, &result))
    })
}

#[tokio::test(start_paused = true)]
async fn client_requested_tasks_follow_the_rules_of_sessions() {
    req!("tasks.http.comply");
    let mock = legacy();
    let client = builder_for(LATEST_LEGACY)
        .connect(target_of(&mock))
        .await
        .unwrap();

    let task = start_task(&client).await;
    let output = task.result().await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("done"));
    for method in ["tools/call", "tasks/get", "tasks/result"] {
        let request = posted_messages(&mock, method);
        let request = request.first().expect(method);
        assert_eq!(request.method, "POST", "each message is a POST of its own");
        assert!(request.json().is_object(), "{method}");
        assert_eq!(
            request.header("accept"),
            "application/json, text/event-stream"
        );
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("mcp-session-id"), "session-1");
        assert_eq!(request.header("mcp-protocol-version"), LATEST_LEGACY);
        assert_eq!(request.header("mcp-name"), "", "no header of the newer era");
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_of_a_dropped_call_is_cancelled_before_close_returns() {
    let mock = modern_with(|_| MockResponse::silence());
    let client = builder_for(MODERN).connect(target_of(&mock)).await.unwrap();
    let call = client.call_tool("work", json!({})).into_future();
    tokio::select! {
        response = call => panic!("{response:?}"),
        _ = mock.first(|request| request.rpc() == "tasks/get") => {}
    }

    client.close().await;

    let cancelled = posted_messages(&mock, "tasks/cancel");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0].json()["params"]["taskId"], ID);
}
