//! What a played server has: a few harmless tools, resources and prompts.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{Heard, Part, tasks};
use crate::client::scene::Scene;
use crate::client::target::Carrier;

/// How long the slow tool takes.
const SLOW: Duration = Duration::from_millis(800);

/// What leads to the second page; no part of it means anything.
pub(crate) const SECOND: &str = "page/2 = \u{fc}&+%20";

/// Returns the result of a request, or the code and the text of an error.
pub(super) fn result(part: &Part, heard: &Heard<'_>) -> Result<Value, (i64, &'static str)> {
    let params = &heard.message["params"];
    let bare = part.scene == Scene::Bare;
    match heard.method {
        "tools/list" => page(part, params, "tools", &tools(part)),
        "tools/call" => call(part, params),
        _ if bare => Err((-32601, "Method not found")),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list" if part.has_tasks() => {
            Ok(tasks::result(part, heard))
        }
        "resources/list" => page(part, params, "resources", &resources()),
        "resources/templates/list" => page(part, params, "resourceTemplates", &templates()),
        "resources/read" => read(params),
        "prompts/list" => page(part, params, "prompts", &prompts()),
        "prompts/get" => Ok(json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": "Say hello." } },
        ] })),
        "completion/complete" => Ok(json!({ "completion": { "values": ["Ada", "Alan"] } })),
        _ => Err((-32601, "Method not found")),
    }
}

/// Returns how long a request takes.
pub(super) fn pause(heard: &Heard<'_>) -> Option<Duration> {
    let slow = heard.method == "tools/call" && heard.message["params"]["name"] == "slow";
    slow.then_some(SLOW)
}

fn tools(part: &Part) -> Vec<Value> {
    let nothing = json!({ "type": "object", "properties": {} });
    let mut tools = vec![
        json!({ "name": "hello", "description": "Says hello", "inputSchema": nothing }),
        weather(part),
        json!({ "name": "slow", "description": "Takes a moment", "inputSchema": nothing }),
    ];
    if !part.has_handshake() && part.carrier == Carrier::Http {
        tools.push(mislabelled());
    }
    if part.has_tasks() {
        let execution = json!({ "taskSupport": "required" });
        tools.push(json!({
            "name": "later", "description": "Is done later", "inputSchema": nothing, "execution": execution,
        }));
    }
    if part.revision > Revision::V2024_11_05 {
        for tool in &mut tools {
            tool["annotations"] = json!({ "readOnlyHint": true });
        }
    }
    tools
}

/// A tool with arguments; where there is such a thing, they go along in headers too.
fn weather(part: &Part) -> Value {
    let mut properties = json!({
        "city": { "type": "string", "description": "Where" },
        "days": { "type": "integer", "description": "How many days ahead" },
        "exact": { "type": "boolean", "description": "Whether guesses will not do" },
    });
    if !part.has_handshake() {
        properties["city"]["x-mcp-header"] = "City".into();
        properties["days"]["x-mcp-header"] = "Days".into();
        properties["exact"]["x-mcp-header"] = "Exact".into();
    }
    json!({
        "name": "weather",
        "description": "Says how the weather will be",
        "inputSchema": { "type": "object", "properties": properties },
    })
}

/// A tool whose marks for headers are wrong: two say the same.
fn mislabelled() -> Value {
    let marked = json!({ "type": "string", "x-mcp-header": "Same" });
    json!({
        "name": "mislabelled",
        "description": "Nobody can call it rightly",
        "inputSchema": { "type": "object", "properties": { "a": marked, "b": marked } },
    })
}

fn call(part: &Part, params: &Value) -> Result<Value, (i64, &'static str)> {
    if part.has_tasks() && params.get("task").is_some() {
        return Ok(tasks::created());
    }
    let known = tools(part)
        .iter()
        .any(|tool| tool["name"] == params["name"]);
    match known {
        true => Ok(json!({ "content": [{ "type": "text", "text": "Hello." }] })),
        false => Err((-32602, "no such tool")),
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

/// Cuts a list into pages where the scene is about that.
fn page(
    part: &Part,
    params: &Value,
    field: &str,
    all: &[Value],
) -> Result<Value, (i64, &'static str)> {
    if part.scene != Scene::Paged {
        return Ok(json!({ field: all }));
    }
    // An empty cursor is one like any other; only since 2026-07-28 that is said.
    let third = match part.has_handshake() {
        true => "3",
        false => "",
    };
    let (from, to, next) = match params.get("cursor").and_then(Value::as_str) {
        None => (0, 1, Some(SECOND)),
        Some(SECOND) => (1, 2, Some(third)),
        Some(cursor) if cursor == third => (2, all.len(), None),
        Some(_) => return Err((-32602, "no such cursor")),
    };
    let at = |place: usize| place.min(all.len());
    let mut result = json!({ field: all[at(from)..at(to.max(from))] });
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    Ok(result)
}
