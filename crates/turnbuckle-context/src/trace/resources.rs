//! The trace as resources.

use serde_json::json;
use turnbuckle_server::{Context, RequestError, Resource};

use super::{Entry, Log, Node, Shown, Trace};

/// The resources `debuglog://tree`, `entries`, `status` and `text`. Each caller reads its own notes.
pub fn resources(trace: &Trace) -> Vec<Resource> {
    let json = "application/json";
    vec![
        resource(trace, "tree", "Calls as a tree", json, |log| {
            json!(Node::forest(log.entries(), &Shown::default())).to_string()
        }),
        resource(
            trace,
            "entries",
            "Every beginning and end of a call",
            json,
            |log| json!(log.entries().collect::<Vec<&Entry>>()).to_string(),
        ),
        resource(trace, "status", "Whether calls are noted", json, |log| {
            json!(Status::of(log)).to_string()
        }),
        resource(
            trace,
            "text",
            "Calls as a tree for people",
            "text/plain",
            |log| Node::render(&Node::forest(log.entries(), &Shown::default())),
        ),
    ]
}

fn resource(
    trace: &Trace,
    name: &str,
    description: &str,
    mime_type: &str,
    text: fn(&Log) -> String,
) -> Resource {
    let trace = trace.clone();
    let read = move |cx: Context| {
        let text = trace.with(cx.principal(), |log| text(log));
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
pub(crate) struct Status {
    enabled: bool,
    filter_pattern: String,
    entry_count: usize,
    /// How deep a call made now would stand.
    current_depth: u32,
}

impl Status {
    pub(crate) fn of(log: &Log) -> Self {
        Self {
            enabled: log.is_enabled(),
            filter_pattern: log.pattern().to_string(),
            entry_count: log.len(),
            current_depth: log.depth(),
        }
    }
}
