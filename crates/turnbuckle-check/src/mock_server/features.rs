//! The tools, resources, prompts and tasks of the mock server.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::server::{MockServer, ReceivedRequest};
use crate::mock_server::{scenario::Scenario, target::TransportKind};

/// The duration of the slow tool.
const SLOW_TOOL_DURATION: Duration = Duration::from_millis(800);

/// The cursor of the second page; opaque.
pub(crate) const SECOND_PAGE_CURSOR: &str = "page/2 = \u{fc}&+%20";

/// Returns the result of a request, or an error code and message.
pub(super) fn result(
    mock: &MockServer,
    received: &ReceivedRequest<'_>,
) -> Result<Value, (i64, &'static str)> {
    let params = &received.message["params"];
    let only_tools = mock.scenario == Scenario::ToolsOnly;
    match received.method {
        "tools/list" => page(mock, params, "tools", &tools(mock)),
        "tools/call" => call(mock, params),
        _ if only_tools => Err((-32601, "Method not found")),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list" if mock.has_tasks() => {
            Ok(task_result(mock, received))
        }
        "resources/list" => page(mock, params, "resources", &resources()),
        "resources/templates/list" => page(mock, params, "resourceTemplates", &templates()),
        "resources/read" => read(params),
        "prompts/list" => page(mock, params, "prompts", &prompts()),
        "prompts/get" => Ok(json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": "Say hello." } },
        ] })),
        "completion/complete" => Ok(json!({ "completion": { "values": ["Ada", "Alan"] } })),
        _ => Err((-32601, "Method not found")),
    }
}

/// Returns the delay of a request.
pub(super) fn pause(received: &ReceivedRequest<'_>) -> Option<Duration> {
    let slow = received.method == "tools/call" && received.message["params"]["name"] == "slow";
    slow.then_some(SLOW_TOOL_DURATION)
}

fn tools(mock: &MockServer) -> Vec<Value> {
    let nothing = json!({ "type": "object", "properties": {} });
    let mut tools = vec![
        json!({ "name": "hello", "description": "Says hello", "inputSchema": nothing }),
        weather(mock),
        json!({ "name": "slow", "description": "Takes some time", "inputSchema": nothing }),
    ];
    if !mock.has_handshake() && mock.transport_kind == TransportKind::Http {
        tools.push(mislabelled());
    }
    if mock.has_tasks() {
        let execution = json!({ "taskSupport": "required" });
        tools.push(json!({
            "name": "later", "description": "Runs as a task", "inputSchema": nothing, "execution": execution,
        }));
    }
    if mock.revision > Revision::V2024_11_05 {
        for tool in &mut tools {
            tool["annotations"] = json!({ "readOnlyHint": true });
        }
    }
    tools
}

/// A tool with arguments; in the modern era they are also sent as param headers.
fn weather(mock: &MockServer) -> Value {
    let mut properties = json!({
        "city": { "type": "string", "description": "Where" },
        "days": { "type": "integer", "description": "How many days ahead" },
        "exact": { "type": "boolean", "description": "Require exact data" },
    });
    if !mock.has_handshake() {
        properties["city"]["x-mcp-header"] = "City".into();
        properties["days"]["x-mcp-header"] = "Days".into();
        properties["exact"]["x-mcp-header"] = "Exact".into();
    }
    json!({
        "name": "weather",
        "description": "Returns a weather forecast",
        "inputSchema": { "type": "object", "properties": properties },
    })
}

/// A tool with invalid param headers: two have the same name.
fn mislabelled() -> Value {
    let with_param_headers = json!({ "type": "string", "x-mcp-header": "Same" });
    json!({
        "name": "mislabelled",
        "description": "Cannot be called",
        "inputSchema": { "type": "object", "properties": { "a": with_param_headers, "b": with_param_headers } },
    })
}

fn call(mock: &MockServer, params: &Value) -> Result<Value, (i64, &'static str)> {
    if mock.has_tasks() && params.get("task").is_some() {
        return Ok(created_task());
    }
    let is_listed = tools(mock)
        .iter()
        .any(|tool| tool["name"] == params["name"]);
    if is_listed {
        Ok(json!({ "content": [{ "type": "text", "text": "Hello." }] }))
    } else {
        Err((-32602, "no such tool"))
    }
}

fn resources() -> Vec<Value> {
    let note = |name| json!({ "uri": format!("note:///{name}"), "name": name });
    ["one", "two", "three"].map(note).into()
}

fn templates() -> Vec<Value> {
    vec![json!({ "uriTemplate": "note:///{name}", "name": "note" })]
}

fn read(params: &Value) -> Result<Value, (i64, &'static str)> {
    match params["uri"].as_str() {
        Some(uri) if uri.starts_with("note:///") => Ok(json!({ "contents": [
            { "uri": uri, "mimeType": "text/plain", "text": "A note." },
        ] })),
        _ => Err((-32602, "no such resource")),
    }
}

fn prompts() -> Vec<Value> {
    vec![
        json!({ "name": "greeting", "arguments": [{ "name": "name", "required": false }] }),
        json!({ "name": "gr\u{fc}\u{df}e", "description": "Says hello in another language" }),
        json!({ "name": "farewell" }),
    ]
}

/// Splits a list into pages in the pagination scenario.
fn page(
    mock: &MockServer,
    params: &Value,
    field: &str,
    all: &[Value],
) -> Result<Value, (i64, &'static str)> {
    if mock.scenario != Scenario::Pagination {
        return Ok(json!({ field: all }));
    }
    // An empty cursor is valid; 2026-07-28 is the first revision to state it.
    let third = if mock.has_handshake() { "3" } else { "" };
    let (from, to, next) = match params.get("cursor").and_then(Value::as_str) {
        None => (0, 1, Some(SECOND_PAGE_CURSOR)),
        Some(SECOND_PAGE_CURSOR) => (1, 2, Some(third)),
        Some(cursor) if cursor == third => (2, all.len(), None),
        Some(_) => return Err((-32602, "no such cursor")),
    };
    let at = |index: usize| index.min(all.len());
    let mut result = json!({ field: all[at(from)..at(to.max(from))] });
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    Ok(result)
}

const TASK_ID: &str = "turnbuckle-task-1";

impl MockServer {
    /// Returns whether calls can become tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.revision == Revision::V2025_11_25 && self.scenario != Scenario::ToolsOnly
    }
}

/// Returns the result of a call that became a task.
fn created_task() -> Value {
    json!({ "task": task("working") })
}

/// Returns the result of a `tasks/*` request. The only task completes with the second `tasks/get`.
fn task_result(mock: &MockServer, received: &ReceivedRequest<'_>) -> Value {
    match received.method {
        "tasks/get" if mock.count("tasks/get") == 0 => task("working"),
        "tasks/get" => task("completed"),
        "tasks/cancel" => task("cancelled"),
        "tasks/list" => json!({ "tasks": [task("completed")] }),
        _ => json!({
            "content": [{ "type": "text", "text": "Hello." }],
            "_meta": { "io.modelcontextprotocol/related-task": { "taskId": TASK_ID } },
        }),
    }
}

fn task(status: &str) -> Value {
    json!({
        "taskId": TASK_ID,
        "status": status,
        "createdAt": "2025-11-25T00:00:00Z",
        "lastUpdatedAt": "2025-11-25T00:00:00Z",
        "ttl": 60_000,
        "pollInterval": 100,
    })
}
