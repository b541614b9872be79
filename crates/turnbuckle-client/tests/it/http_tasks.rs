//! Tasks over HTTP: what their requests look like.

use std::future::IntoFuture;

use serde_json::{Value, json};
use turnbuckle_client::{CallOutcome, Client, Task};
use turnbuckle_spec_coverage::req;

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{LATEST_LEGACY, MODERN, at, posted, server, speaking},
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

/// A server of 2026-07-28 whose tool becomes a task that never ends by itself, and asks.
fn modern() -> FakeHttp {
    modern_with(|seen| {
        let question = json!({ "method": "roots/list", "params": {} });
        let more = json!({ "resultType": "complete", "inputRequests": { "q": question } });
        Reply::result(seen, &with(task("input_required"), more))
    })
}

/// The same with other answers to `tasks/get`.
fn modern_with(get: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> FakeHttp {
    server(MODERN, move |seen| {
        let result = match seen.rpc().as_str() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": [MODERN],
                "capabilities": {
                    "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
                },
                "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/call" => with(task("working"), json!({ "resultType": "task" })),
            "tasks/get" => return Some(get(seen)),
            "tasks/update" | "tasks/cancel" => json!({ "resultType": "complete" }),
            _ => return None,
        };
        Some(Reply::result(seen, &result))
    })
}

async fn begin(client: &Client) -> Task {
    match client.call_tool_as_task("work", json!({})).await.unwrap() {
        CallOutcome::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_about_a_task_name_it_in_a_header() {
    req!("ext-tasks.http.mcp-name");
    let fake = modern();
    let client = speaking(MODERN).connect(at(&fake)).await.unwrap();
    let task = begin(&client).await;

    task.poll().await.unwrap();
    let answers = json!({ "q": { "roots": [] } });
    let answers = serde_json::from_value(answers).unwrap();
    task.send_input(answers).await.unwrap();
    task.cancel().await.unwrap();

    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let seen = posted(&fake, method);
        let seen = seen.first().expect(method);
        assert_eq!(seen.header("mcp-method"), method);
        // As every name that is not plain ASCII.
        assert_eq!(
            seen.header("mcp-name"),
            "=?base64?Nzg2NTEyZTIgw6k=?=",
            "{method}"
        );
        assert_eq!(seen.json()["params"]["taskId"], ID);
    }
}

/// A server of 2025-11-25 whose tool wants to be a task, which is done when it is looked at again.
fn legacy() -> FakeHttp {
    server(LATEST_LEGACY, |seen: &Seen| {
        let result = match seen.rpc().as_str() {
            "initialize" => {
                let result = json!({
                    "protocolVersion": LATEST_LEGACY,
                    "capabilities": {
                        "tools": {},
                        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
                    },
                    "serverInfo": { "name": "fake", "version": "1" },
                });
                return Some(Reply::result(seen, &result).header("Mcp-Session-Id", "session-1"));
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
        Some(Reply::result(seen, &result))
    })
}

#[tokio::test(start_paused = true)]
async fn tasks_of_the_older_design_keep_to_the_rules_of_http() {
    req!("tasks.http.comply");
    let fake = legacy();
    let client = speaking(LATEST_LEGACY).connect(at(&fake)).await.unwrap();

    let task = begin(&client).await;
    let output = task.result().await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("done"));
    for method in ["tools/call", "tasks/get", "tasks/result"] {
        let seen = posted(&fake, method);
        let seen = seen.first().expect(method);
        assert_eq!(seen.method, "POST", "each message is a POST of its own");
        assert!(seen.json().is_object(), "{method}");
        assert_eq!(seen.header("accept"), "application/json, text/event-stream");
        assert_eq!(seen.header("content-type"), "application/json");
        assert_eq!(seen.header("mcp-session-id"), "session-1");
        assert_eq!(seen.header("mcp-protocol-version"), LATEST_LEGACY);
        assert_eq!(seen.header("mcp-name"), "", "no header of the newer era");
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_of_a_dropped_call_is_cancelled_before_close_returns() {
    let fake = modern_with(|_| Reply::silence());
    let client = speaking(MODERN).connect(at(&fake)).await.unwrap();
    let call = client.call_tool("work", json!({})).into_future();
    tokio::select! {
        answer = call => panic!("{answer:?}"),
        _ = fake.first(|seen| seen.rpc() == "tasks/get") => {}
    }

    client.close().await;

    let cancelled = posted(&fake, "tasks/cancel");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0].json()["params"]["taskId"], ID);
}
