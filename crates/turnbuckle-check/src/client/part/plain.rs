//! A server that does nothing special, in every revision.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{ENDPOINT, Heard, Page, Part, features};
use crate::client::cue::{Cue, Form, Reply, response};
use crate::client::scene::Scene;
use crate::client::target::Carrier;

pub(super) fn reply(part: &Part, heard: &Heard<'_>) -> Reply {
    let request = heard.message;
    match (heard.method, part.has_handshake()) {
        ("initialize", true) => initialize(part, request),
        ("server/discover", true) => unknown_to_old(part, request),
        ("server/discover", false) => {
            let result = json!({
                "supportedVersions": [part.revision.as_str()],
                "capabilities": capabilities(part),
                "instructions": "Played by a check.",
            });
            complete(part, heard, result)
        }
        ("initialize", false) => no_handshake(part, request),
        ("ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe", true) => {
            Reply::result(request, &json!({}))
        }
        ("subscriptions/listen", false) => listen(request),
        _ => match features::result(part, heard) {
            Ok(result) => complete(part, heard, result),
            Err((code, message)) => {
                let status = match (part.has_handshake(), code) {
                    (true, _) => 200,
                    (false, -32601) => 404,
                    (false, _) => 400,
                };
                Reply::error(request, code, message).with_status(status)
            }
        },
    }
}

/// Returns what the server says that it can do.
pub(crate) fn capabilities(part: &Part) -> Value {
    let mut all = json!({ "tools": { "listChanged": true } });
    if part.scene == Scene::Bare {
        return all;
    }
    all["resources"] = json!({ "subscribe": true, "listChanged": true });
    all["prompts"] = json!({ "listChanged": true });
    all["logging"] = json!({});
    if part.revision >= Revision::V2025_03_26 {
        all["completions"] = json!({});
    }
    if part.has_tasks() {
        all["tasks"] = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    }
    all
}

fn initialize(part: &Part, request: &Value) -> Reply {
    let result = json!({
        "protocolVersion": part.revision.as_str(),
        "capabilities": capabilities(part),
        "serverInfo": us(),
        "instructions": "Played by a check.",
    });
    let reply = Reply::result(request, &result);
    match part.carrier == Carrier::Http && part.revision >= Revision::V2025_03_26 {
        true => {
            let number = part.count("initialize") + 1;
            reply.header("mcp-session-id", format!("turnbuckle-session-{number}"))
        }
        false => reply,
    }
}

/// What a server says that has never heard of revisions without a handshake.
fn unknown_to_old(part: &Part, request: &Value) -> Reply {
    match part.carrier {
        Carrier::Lines => Reply::error(request, -32601, "Method not found"),
        Carrier::Http => {
            let text = "Bad Request: no session";
            Reply::error(request, -32000, text).with_status(400)
        }
    }
}

/// What a server says that knows no handshake.
fn no_handshake(part: &Part, request: &Value) -> Reply {
    match part.carrier {
        Carrier::Lines => Reply::error(request, -32601, "this server speaks 2026-07-28 only"),
        Carrier::Http => {
            let text = "MCP-Protocol-Version is missing: this server speaks 2026-07-28 only";
            Reply::error(request, -32020, text).with_status(400)
        }
    }
}

fn listen(request: &Value) -> Reply {
    let acknowledged = json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] },
            "notifications": request["params"]["notifications"],
        },
    });
    Reply::cues([Cue::Say(acknowledged), Cue::Stay]).streamed()
}

/// Answers with a result that has all that the revision wants of results.
fn complete(part: &Part, heard: &Heard<'_>, mut result: Value) -> Reply {
    if !part.has_handshake() {
        if result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
        }
        let cacheable = heard.method.ends_with("/list")
            || ["server/discover", "resources/read"].contains(&heard.method);
        if cacheable {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = us();
    }
    let mut reply = Reply::result(heard.message, &result);
    if let Some(pause) = features::pause(heard) {
        reply = reply.first([Cue::Wait(pause)]);
    }
    reply
}

pub(super) fn page(part: &Part, page: &Page<'_>) -> Reply {
    let at_endpoint = page.path.split('?').next() == Some(ENDPOINT);
    match (page.method, part.has_handshake()) {
        ("GET", true) if at_endpoint => Reply {
            form: Form::Stream,
            cues: vec![Cue::Stay],
            ..Reply::status(200)
        },
        ("DELETE", true) if at_endpoint => Reply::status(200),
        (_, _) if at_endpoint => Reply::status(405).header("allow", "POST"),
        _ => Reply::status(404),
    }
}

fn us() -> Value {
    json!({ "name": "turnbuckle-check", "version": env!("CARGO_PKG_VERSION") })
}

impl Part {
    /// Returns the message that plainly answers a request.
    pub(crate) fn plain_answer(&self, heard: &Heard<'_>) -> Value {
        let cues = self.plainly(heard).cues;
        let said = cues.into_iter().rev().find_map(|cue| match cue {
            Cue::Say(message) => Some(message),
            _ => None,
        });
        said.unwrap_or_else(|| response(heard.message, &json!({})))
    }
}
