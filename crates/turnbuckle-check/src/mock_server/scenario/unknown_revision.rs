//! Servers that support an unknown revision only, or the handshake only.

use serde_json::json;

use crate::mock_server::{
    script::ScriptedReply,
    server::{MockServer, ReceivedRequest, capabilities},
};

/// A revision before the first.
pub(crate) const BEFORE: &str = "1999-12-31";

/// A revision after the last.
pub(crate) const AFTER: &str = "2999-12-31";

pub(super) fn reply(mock: &MockServer, received: &ReceivedRequest<'_>) -> Option<ScriptedReply> {
    let request = received.message;
    match (received.method, mock.has_handshake()) {
        ("initialize", true) => Some(ScriptedReply::result(
            request,
            &json!({
                "protocolVersion": BEFORE,
                "capabilities": capabilities(mock),
                "serverInfo": { "name": "turnbuckle-check", "version": "0" },
            }),
        )),
        (_, true) | ("initialize", false) => None,
        (_, false) => {
            let asked = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let message = json!({ "jsonrpc": "2.0", "id": request["id"], "error": {
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": { "supported": [AFTER], "requested": asked },
            } });
            Some(ScriptedReply::message(message).with_status(400))
        }
    }
}

/// Rejects modern requests with an error code, like a legacy server.
pub(super) fn legacy_only(received: &ReceivedRequest<'_>, code: i64) -> Option<ScriptedReply> {
    let known = ["initialize", "ping"].contains(&received.method);
    let modern = received.message["params"]["_meta"]
        .get("io.modelcontextprotocol/protocolVersion")
        .is_some();
    if known || !modern {
        return None;
    }
    let status = match code {
        -32601 => 200,
        _ => 400,
    };
    Some(ScriptedReply::error(received.message, code, "Unknown request").with_status(status))
}
