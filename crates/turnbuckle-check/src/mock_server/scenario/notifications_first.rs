//! Notifications before responses, and both in batches.

use serde_json::{Value, json};

use super::PING;
use crate::mock_server::{
    script::{ScriptStep, ScriptedReply},
    server::{MockServer, ReceivedRequest},
};

/// An unknown notification.
pub(crate) const UNKNOWN_NOTIFICATION: &str = "notifications/turnbuckle/unknown";

pub(super) fn reply(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    let before_all = ["initialize", "server/discover", "subscriptions/listen"];
    if received.method == "subscriptions/listen" {
        return None;
    }
    let reply = mock.default_reply(received);
    if reply.status != 200 {
        return Some(reply);
    }
    let notifications = if before_all.contains(&received.method) {
        Vec::new()
    } else {
        notifications(mock, received.message)
    };
    Some(
        reply
            .first(notifications.into_iter().map(ScriptStep::Send))
            .streamed(),
    )
}

/// Responds in a batch, after a batch of notifications and a request: the schema does not allow mixed batches.
pub(super) fn batch(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    if !received.method.ends_with("/list") {
        return None;
    }
    let mut batch = notifications(mock, received.message);
    // The response to the ping shows that the client reads batches.
    if mock.is_first_time("pinged in a batch") {
        batch.push(json!({ "jsonrpc": "2.0", "id": PING, "method": "ping" }));
    }
    let responses = Value::Array(vec![mock.default_response(received)]);
    Some(ScriptedReply::steps([Value::Array(batch), responses].map(ScriptStep::Send)).streamed())
}

fn notifications(mock: &MockServer, request: &Value) -> Vec<Value> {
    let meta = &request["params"]["_meta"];
    let mut notifications = Vec::new();
    let wants_logs = if mock.has_handshake() {
        mock.count("logging/setLevel") > 0
    } else {
        meta.get("io.modelcontextprotocol/logLevel").is_some()
    };
    if wants_logs {
        notifications.push(notification(
            "notifications/message",
            &json!({ "level": "emergency", "logger": "check", "data": "This is only a check." }),
        ));
    }
    if let Some(token) = meta.get("progressToken") {
        notifications.push(notification(
            "notifications/progress",
            &json!({ "progressToken": token, "progress": 1, "total": 2 }),
        ));
    }
    if mock.has_handshake() {
        notifications.push(notification(UNKNOWN_NOTIFICATION, &json!({})));
    }
    notifications
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
