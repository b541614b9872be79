//! Requests to the client: as JSON-RPC requests, or as input requests in results.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mock_server::{
    script::{BodyKind, ScriptStep, ScriptedReply, response},
    server::{MockServer, ReceivedRequest},
    target::TransportKind,
};

/// The ids or keys of the requests.
pub(crate) const PING: i64 = 7_001;
pub(crate) const UNKNOWN: &str = "ask-unknown";
pub(crate) const ROOTS: &str = "ask-roots";
pub(crate) const SAMPLING: &str = "ask-model";
pub(crate) const TOOLS: &str = "ask-tools";
pub(crate) const FORM: &str = "ask-form";
pub(crate) const URL_ELICITATION: &str = "ask-visit";
/// A sampling request to a client that does not declare `sampling`.
pub(crate) const UNDECLARED: &str = "ask-undeclared";

/// An opaque request state.
const STATE: &str = "{\"not\": 'json'} \u{e9}=+/%20 ";

pub(super) fn reply(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    if [
        "initialize",
        "server/discover",
        "ping",
        "subscriptions/listen",
    ]
    .contains(&received.method)
    {
        return None;
    }
    if mock.has_handshake() {
        by_requests(mock, received)
    } else {
        by_results(mock, received)
    }
}

/// Sends general requests with the first request, and input requests with the first tool call.
fn by_requests(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    let mut client_requests = Vec::new();
    if mock.is_first_time("client requests") {
        client_requests.push(client_request(&json!(PING), "ping", &json!({})));
        client_requests.push(client_request(
            &json!(UNKNOWN),
            "turnbuckle/no-such-method",
            &json!({}),
        ));
        if mock.declared("/roots") {
            client_requests.push(client_request(&json!(ROOTS), "roots/list", &json!({})));
        }
    }
    if received.method == "tools/call" && mock.is_first_time("input requested") {
        client_requests.extend(
            inputs(mock).map(|(key, method, params)| client_request(&json!(key), method, &params)),
        );
    }
    if client_requests.is_empty() {
        return None;
    }
    let reply = mock.default_reply(received);
    Some(ScriptedReply {
        body_kind: BodyKind::Stream,
        ..reply.first(client_requests.into_iter().map(ScriptStep::SendAndWait))
    })
}

/// Requests input in two round trips: the first with a request state, the second without.
fn by_results(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    if received.method != "tools/call" {
        return None;
    }
    let params = &received.message["params"];
    let is_retry = params.get("inputResponses").is_some() || params.get("requestState").is_some();
    let mut result = json!({ "resultType": "input_required" });
    if mock.is_first_time("first round trip") {
        let client_requests = inputs(mock).map(|(key, method, params)| {
            (
                key.to_owned(),
                json!({ "method": method, "params": params }),
            )
        });
        let client_requests = Map::from_iter(client_requests);
        if !client_requests.is_empty() {
            result["inputRequests"] = client_requests.into();
        }
        result["requestState"] = STATE.into();
    } else if is_retry && mock.declared("/elicitation") && mock.is_first_time("second round trip") {
        result["inputRequests"] = json!({ "once-more": {
            "method": "elicitation/create", "params": form(),
        } });
    } else {
        return None;
    }
    Some(ScriptedReply::message(response(received.message, &result)))
}

/// Returns the input requests for declared capabilities: key, method and parameters.
fn inputs(mock: &MockServer) -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let modern = !mock.has_handshake();
    let mut inputs = Vec::new();
    if modern && mock.declared("/roots") {
        inputs.push((ROOTS, "roots/list", json!({})));
    }
    if mock.declared("/sampling") {
        inputs.push((SAMPLING, "sampling/createMessage", sampling()));
    }
    // A client that does not declare sampling must reject this.
    if !modern && !mock.declared("/sampling") {
        inputs.push((UNDECLARED, "sampling/createMessage", sampling()));
    }
    let tools = mock.revision == Revision::V2025_11_25 && !mock.declared("/sampling/tools");
    if tools && mock.declared("/sampling") {
        inputs.push((TOOLS, "sampling/createMessage", sampling_with_tools()));
    }
    if mock.declared("/elicitation") && mock.revision >= Revision::V2025_06_18 {
        inputs.push((FORM, "elicitation/create", form()));
        // Before 2025-11-25 there are only forms; since 2026-07-28 only declared modes are
        // requested.
        let revision_runs =
            mock.revision == Revision::V2025_11_25 || modern && mock.declared("/elicitation/url");
        if revision_runs && mock.transport_kind == TransportKind::Http {
            inputs.push((URL_ELICITATION, "elicitation/create", ctx(mock)));
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

/// Only valid for clients that declare `sampling.tools`.
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

fn ctx(mock: &MockServer) -> Value {
    let mut params = json!({
        "mode": "url",
        "message": "This is only a check: there is nothing to see.",
        "url": format!("{}/visit", mock.origin),
    });
    if mock.has_handshake() {
        params["elicitationId"] = "turnbuckle-visit-1".into();
    }
    params
}

fn client_request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
