//! The trace as resources.

use serde_json::json;
use turnbuckle_server::{Context, RequestError, Resource};

use super::{CallLog, CallNode, LogEntry, OwnerLog, RenderOptions};

/// The resources `debuglog://tree`, `entries`, `status` and `text`. Each caller reads its own notes.
pub fn resources(call_log: &CallLog) -> Vec<Resource> {
    let json = "application/json";
    vec![
        resource(call_log, "tree", "Calls as a tree", json, |log| {
            json!(CallNode::forest(log.entries(), &RenderOptions::default())).to_string()
        }),
        resource(
            call_log,
            "entries",
            "Every beginning and end of a call",
            json,
            |log| json!(log.entries().collect::<Vec<&LogEntry>>()).to_string(),
        ),
        resource(call_log, "status", "Whether calls are noted", json, |log| {
            json!(CallLogStatus::from_log(log)).to_string()
        }),
        resource(
            call_log,
            "text",
            "Calls as a tree for people",
            "text/plain",
            |log| CallNode::render(&CallNode::forest(log.entries(), &RenderOptions::default())),
        ),
    ]
}

fn resource(
    call_log: &CallLog,
    name: &str,
    description: &str,
    mime_type: &str,
    text: fn(&OwnerLog) -> String,
) -> Resource {
    let call_log = call_log.clone();
    let read = move |cx: Context| {
        let text = call_log.with_log(cx.principal(), |log| text(log));
        std::future::ready(text.map_err(|error| RequestError::invalid(error.to_string())))
    };
    Resource::new(
        format!("debuglog://{name}"),
        format!("debug log: {name}"),
        read,
    )
    .description(description)
    .mime_type(mime_type)
}

/// What the log is doing.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CallLogStatus {
    enabled: bool,
    filter_pattern: String,
    entry_count: usize,
    /// How deep a call made now would stand.
    current_depth: u32,
}

impl CallLogStatus {
    pub(crate) fn from_log(log: &OwnerLog) -> Self {
        Self {
            enabled: log.is_enabled(),
            filter_pattern: log.pattern().to_string(),
            entry_count: log.len(),
            current_depth: log.depth(),
        }
    }
}
