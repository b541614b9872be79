//! Replies without special behavior, in every revision.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{
    features,
    server::{ENDPOINT, MockServer, NonRpcRequest, ReceivedRequest},
};
use crate::mock_server::{
    scenario::Scenario,
    script::{BodyKind, ScriptStep, ScriptedReply, response},
    target::TransportKind,
};

pub(super) fn reply(mock: &MockServer, received: &ReceivedRequest<'_>) -> ScriptedReply {
    let request = received.message;
    match (received.method, mock.has_handshake()) {
        ("initialize", true) => initialize(mock, request),
        ("server/discover", true) => unknown_to_old(mock, request),
        ("server/discover", false) => {
            let result = json!({
                "supportedVersions": [mock.revision.as_str()],
                "capabilities": capabilities(mock),
                "instructions": "Mock server of a check.",
            });
            complete(mock, received, result)
        }
        ("initialize", false) => no_handshake(mock, request),
        ("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe", true) => {
            ScriptedReply::result(request, &json!({}))
        }
        ("subscriptions/listen", false) => listen(request),
        _ => match features::result(mock, received) {
            Ok(result) => complete(mock, received, result),
            Err((code, message)) => {
                let status = match (mock.has_handshake(), code) {
                    (true, _) => 200,
                    (false, -32601) => 404,
                    (false, _) => 400,
                };
                ScriptedReply::error(request, code, message).with_status(status)
            }
        },
    }
}

/// Returns the advertised capabilities.
pub(crate) fn capabilities(mock: &MockServer) -> Value {
    let mut all = json!({ "tools": { "listChanged": true } });
    if mock.scenario == Scenario::ToolsOnly {
        return all;
    }
    all["resources"] = json!({ "subscribe": true, "listChanged": true });
    all["prompts"] = json!({ "listChanged": true });
    all["logging"] = json!({});
    if mock.revision >= Revision::V2025_03_26 {
        all["completions"] = json!({});
    }
    if mock.has_tasks() {
        all["tasks"] = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    }
    all
}

fn initialize(mock: &MockServer, request: &Value) -> ScriptedReply {
    let result = json!({
        "protocolVersion": mock.revision.as_str(),
        "capabilities": capabilities(mock),
        "serverInfo": server_info(),
        "instructions": "Mock server of a check.",
    });
    let reply = ScriptedReply::result(request, &result);
    if mock.transport_kind == TransportKind::Http && mock.revision >= Revision::V2025_03_26 {
        let number = mock.count("initialize") + 1;
        reply.header("mcp-session-id", format!("turnbuckle-session-{number}"))
    } else {
        reply
    }
}

/// Replies to `server/discover` like a legacy server.
fn unknown_to_old(mock: &MockServer, request: &Value) -> ScriptedReply {
    match mock.transport_kind {
        TransportKind::Ndjson => ScriptedReply::error(request, -32601, "Method not found"),
        TransportKind::Http => {
            let text = "Bad Request: no session";
            ScriptedReply::error(request, -32000, text).with_status(400)
        }
    }
}

/// Replies to `initialize` like a modern server.
fn no_handshake(mock: &MockServer, request: &Value) -> ScriptedReply {
    match mock.transport_kind {
        TransportKind::Ndjson => {
            ScriptedReply::error(request, -32601, "this server supports 2026-07-28 only")
        }
        TransportKind::Http => {
            let text = "MCP-Protocol-Version is missing: this server supports 2026-07-28 only";
            ScriptedReply::error(request, -32020, text).with_status(400)
        }
    }
}

fn listen(request: &Value) -> ScriptedReply {
    let acknowledged = json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] },
            "notifications": request["params"]["notifications"],
        },
    });
    ScriptedReply::steps([ScriptStep::Send(acknowledged), ScriptStep::KeepOpen]).streamed()
}

/// Replies with a result, adding the members that the revision requires.
fn complete(mock: &MockServer, received: &ReceivedRequest<'_>, mut result: Value) -> ScriptedReply {
    if !mock.has_handshake() {
        if result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
        }
        let cacheable = received.method.ends_with("/list")
            || ["server/discover", "resources/read"].contains(&received.method);
        if cacheable {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
    }
    let mut reply = ScriptedReply::result(received.message, &result);
    if let Some(pause) = features::pause(received) {
        reply = reply.first([ScriptStep::Wait(pause)]);
    }
    reply
}

pub(super) fn page(mock: &MockServer, page: &NonRpcRequest<'_>) -> ScriptedReply {
    let at_endpoint = page.path.split('?').next() == Some(ENDPOINT);
    match (page.method, mock.has_handshake()) {
        ("GET", true) if at_endpoint => ScriptedReply {
            body_kind: BodyKind::Stream,
            steps: vec![ScriptStep::KeepOpen],
            ..ScriptedReply::status(200)
        },
        ("DELETE", true) if at_endpoint => ScriptedReply::status(200),
        (_, _) if at_endpoint => ScriptedReply::status(405).header("allow", "POST"),
        _ => ScriptedReply::status(404),
    }
}

fn server_info() -> Value {
    json!({ "name": "turnbuckle-check", "version": env!("CARGO_PKG_VERSION") })
}

impl MockServer {
    /// Returns the default response to a request.
    pub(crate) fn default_response(&self, received: &ReceivedRequest<'_>) -> Value {
        let steps = self.default_reply(received).steps;
        let message = steps.into_iter().rev().find_map(|step| match step {
            ScriptStep::Send(message) => Some(message),
            _ => None,
        });
        message.unwrap_or_else(|| response(received.message, &json!({})))
    }
}
