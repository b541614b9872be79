//! A server that tells before it answers, and one that does both at once.

use serde_json::{Value, json};

use super::PING;
use crate::client::cue::{Cue, Reply};
use crate::client::part::{Heard, Part};

/// What nobody knows.
pub(crate) const UNHEARD_OF: &str = "notifications/turnbuckle/unheard-of";

pub(super) fn reply(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    let before_all = ["initialize", "server/discover", "subscriptions/listen"];
    if heard.method == "subscriptions/listen" {
        return None;
    }
    let reply = part.plainly(heard);
    if reply.status != 200 {
        return Some(reply);
    }
    let told = match before_all.contains(&heard.method) {
        true => Vec::new(),
        false => told(part, heard.message),
    };
    Some(reply.first(told.into_iter().map(Cue::Say)).streamed())
}

/// Answers in a batch, after a batch of what is told and asked: the schema has no batch of both kinds.
pub(super) fn batch(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    if !heard.method.ends_with("/list") {
        return None;
    }
    let mut batch = told(part, heard.message);
    // Whoever answers this has read the batch.
    if part.first_time("asked in a batch") {
        batch.push(json!({ "jsonrpc": "2.0", "id": PING, "method": "ping" }));
    }
    let answers = Value::Array(vec![part.plain_answer(heard)]);
    Some(Reply::cues([Value::Array(batch), answers].map(Cue::Say)).streamed())
}

fn told(part: &Part, request: &Value) -> Vec<Value> {
    let meta = &request["params"]["_meta"];
    let mut told = Vec::new();
    let wants_logs = match part.has_handshake() {
        true => part.count("logging/setLevel") > 0,
        false => meta.get("io.modelcontextprotocol/logLevel").is_some(),
    };
    if wants_logs {
        told.push(notification(
            "notifications/message",
            &json!({ "level": "emergency", "logger": "check", "data": "This is only a check." }),
        ));
    }
    if let Some(token) = meta.get("progressToken") {
        told.push(notification(
            "notifications/progress",
            &json!({ "progressToken": token, "progress": 1, "total": 2 }),
        ));
    }
    if part.has_handshake() {
        told.push(notification(UNHEARD_OF, &json!({})));
    }
    told
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
