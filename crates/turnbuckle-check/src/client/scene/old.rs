//! A server that knows only the handshake, and how it says so.

use crate::client::cue::Reply;
use crate::client::part::Heard;

pub(super) fn reply(heard: &Heard<'_>, code: i64) -> Option<Reply> {
    let known = ["initialize", "ping"].contains(&heard.method);
    let modern = heard.message["params"]["_meta"]
        .get("io.modelcontextprotocol/protocolVersion")
        .is_some();
    if known || !modern {
        return None;
    }
    let status = match code {
        -32601 => 200,
        _ => 400,
    };
    Some(Reply::error(heard.message, code, "What do you mean?").with_status(status))
}
