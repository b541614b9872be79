//! The tool that a caller sees instead of those of a server, until it has logged in there.

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;

use crate::{
    convert::ListKind,
    errors,
    lifecycle::OWN_DEFINITIONS_REVISION,
    upstream::{
        UpstreamServer,
        list_cache::{self, CurrentList, ListItem, ServerList},
    },
};

/// The name of the tool, which servers are unlikely to use.
pub(crate) const NAME: &str = "turnbuckle_log_in";

/// Returns the list of a caller for which the server has none because it has to log in; `None` after another error.
pub(crate) fn list_before_login(
    server: &UpstreamServer,
    kind: ListKind,
    error: &RpcError,
) -> Option<CurrentList> {
    let has_logins = server.settings.caller_logins.is_some();
    if !has_logins || !errors::requires_login(server.name(), error) {
        return None;
    }
    let items = match kind {
        ListKind::Tools => vec![definition(server.name())],
        _ => Vec::new(),
    };
    let now = Instant::now();
    Some(CurrentList {
        list: Arc::new(ServerList {
            id: list_cache::next_list_id(),
            items,
            revision: OWN_DEFINITIONS_REVISION,
            is_complete: true,
        }),
        next_cursor: None,
        received: now,
        expires: Some(now),
        stale_at: now,
        is_private: true,
    })
}

fn definition(server: &str) -> ListItem {
    let description = format!(
        "Log in to server `{server}`. Its tools are listed when the user has logged in; call this tool first."
    );
    let json = json!({
        "name": NAME,
        "title": "Log in",
        "description": description,
        "inputSchema": { "type": "object", "properties": {} },
    });
    ListItem {
        name: NAME.to_owned(),
        json: json.to_string(),
    }
}

/// Returns the result of the tool for a caller that is logged in.
pub(crate) fn done(server: &str) -> String {
    let text = format!("The user is logged in to server `{server}`. List the tools again.");
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}
