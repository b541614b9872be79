//! A server that asks its client while it answers: by requests of its own, or by results that want input first.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::client::cue::{Cue, Form, Reply, response};
use crate::client::part::{Heard, Part};
use crate::client::target::Carrier;

/// The ids of our questions, and the keys where they have no ids.
pub(crate) const PING: i64 = 7_001;
pub(crate) const UNKNOWN: &str = "ask-unknown";
pub(crate) const ROOTS: &str = "ask-roots";
pub(crate) const MODEL: &str = "ask-model";
pub(crate) const TOOLS: &str = "ask-tools";
pub(crate) const FORM: &str = "ask-form";
pub(crate) const VISIT: &str = "ask-visit";
/// A question for a model to a client that has not declared `sampling`.
pub(crate) const UNDECLARED: &str = "ask-undeclared";

/// What is to come back as it is.
const STATE: &str = "{\"not\": 'json'} \u{e9}=+/%20 ";

pub(super) fn reply(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    if [
        "initialize",
        "server/discover",
        "ping",
        "subscriptions/listen",
    ]
    .contains(&heard.method)
    {
        return None;
    }
    match part.has_handshake() {
        true => by_requests(part, heard),
        false => by_results(part, heard),
    }
}

/// Asks with the first request what anybody may be asked, and with the first call what belongs to calls.
fn by_requests(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    let mut questions = Vec::new();
    if part.first_time("asked") {
        questions.push(question(&json!(PING), "ping", &json!({})));
        questions.push(question(
            &json!(UNKNOWN),
            "turnbuckle/no-such-method",
            &json!({}),
        ));
        if part.declared("/roots") {
            questions.push(question(&json!(ROOTS), "roots/list", &json!({})));
        }
    }
    if heard.method == "tools/call" && part.first_time("asked for input") {
        questions.extend(
            inputs(part).map(|(key, method, params)| question(&json!(key), method, &params)),
        );
    }
    if questions.is_empty() {
        return None;
    }
    let reply = part.plainly(heard);
    Some(Reply {
        form: Form::Stream,
        ..reply.first(questions.into_iter().map(Cue::Ask))
    })
}

/// Asks in two rounds: the first has a state to give back, the second none.
fn by_results(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    if heard.method != "tools/call" {
        return None;
    }
    let params = &heard.message["params"];
    let answered = params.get("inputResponses").is_some() || params.get("requestState").is_some();
    let mut result = json!({ "resultType": "input_required" });
    if part.first_time("first round") {
        let questions = inputs(part).map(|(key, method, params)| {
            (
                key.to_owned(),
                json!({ "method": method, "params": params }),
            )
        });
        let questions = Map::from_iter(questions);
        if !questions.is_empty() {
            result["inputRequests"] = questions.into();
        }
        result["requestState"] = STATE.into();
    } else if answered && part.declared("/elicitation") && part.first_time("second round") {
        result["inputRequests"] = json!({ "once-more": {
            "method": "elicitation/create", "params": form(),
        } });
    } else {
        return None;
    }
    Some(Reply::say(response(heard.message, &result)))
}

/// Returns what a client is asked that has declared it: key, method and parameters.
fn inputs(part: &Part) -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let modern = !part.has_handshake();
    let mut inputs = Vec::new();
    if modern && part.declared("/roots") {
        inputs.push((ROOTS, "roots/list", json!({})));
    }
    if part.declared("/sampling") {
        inputs.push((MODEL, "sampling/createMessage", sampling()));
    }
    // A client that has not declared it refuses; one that answers has something that it did not declare.
    if !modern && !part.declared("/sampling") {
        inputs.push((UNDECLARED, "sampling/createMessage", sampling()));
    }
    let tools = part.revision == Revision::V2025_11_25 && !part.declared("/sampling/tools");
    if tools && part.declared("/sampling") {
        inputs.push((TOOLS, "sampling/createMessage", sampling_with_tools()));
    }
    if part.declared("/elicitation") && part.revision >= Revision::V2025_06_18 {
        inputs.push((FORM, "elicitation/create", form()));
        // Before 2025-11-25 there are only forms; since 2026-07-28 nobody asks for what was not declared.
        let visits =
            part.revision == Revision::V2025_11_25 || modern && part.declared("/elicitation/url");
        if visits && part.carrier == Carrier::Http {
            inputs.push((VISIT, "elicitation/create", visit(part)));
        }
    }
    inputs.into_iter()
}

fn sampling() -> Value {
    json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "Say hello." } }],
        "maxTokens": 16,
    })
}

/// What nobody may be asked who has not declared it.
fn sampling_with_tools() -> Value {
    let mut params = sampling();
    params["tools"] = json!([{ "name": "hello", "inputSchema": { "type": "object" } }]);
    params
}

fn form() -> Value {
    json!({
        "message": "This is only a check: what is your name?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "minLength": 1 } },
            "required": ["name"],
        },
    })
}

fn visit(part: &Part) -> Value {
    let mut params = json!({
        "mode": "url",
        "message": "This is only a check: there is nothing to see.",
        "url": format!("{}/visit", part.origin),
    });
    if part.has_handshake() {
        params["elicitationId"] = "turnbuckle-visit-1".into();
    }
    params
}

fn question(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
