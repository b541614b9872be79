//! A server that speaks only a revision that nobody knows.

use serde_json::json;

use crate::client::cue::Reply;
use crate::client::part::{Heard, Part, capabilities};

/// A revision before the first.
pub(crate) const BEFORE: &str = "1999-12-31";

/// A revision after the last.
pub(crate) const AFTER: &str = "2999-12-31";

pub(super) fn reply(part: &Part, heard: &Heard<'_>) -> Option<Reply> {
    let request = heard.message;
    match (heard.method, part.has_handshake()) {
        ("initialize", true) => Some(Reply::result(
            request,
            &json!({
                "protocolVersion": BEFORE,
                "capabilities": capabilities(part),
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
            Some(Reply::say(message).with_status(400))
        }
    }
}
