//! A call that is answered later, as 2025-11-25 has it.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{Heard, Part};
use crate::client::scene::Scene;

const ID: &str = "turnbuckle-task-1";

impl Part {
    /// Says whether calls can become tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.revision == Revision::V2025_11_25 && self.scene != Scene::Bare
    }
}

/// Answers a call that has become a task.
pub(super) fn created() -> Value {
    json!({ "task": task("working") })
}

/// Answers what is asked about tasks: there is one, and it is done when somebody looks for the second time.
pub(super) fn result(part: &Part, heard: &Heard<'_>) -> Value {
    match heard.method {
        "tasks/get" if part.count("tasks/get") == 0 => task("working"),
        "tasks/get" => task("completed"),
        "tasks/cancel" => task("cancelled"),
        "tasks/list" => json!({ "tasks": [task("completed")] }),
        _ => json!({
            "content": [{ "type": "text", "text": "Hello." }],
            "_meta": { "io.modelcontextprotocol/related-task": { "taskId": ID } },
        }),
    }
}

fn task(status: &str) -> Value {
    json!({
        "taskId": ID,
        "status": status,
        "createdAt": "2025-11-25T00:00:00Z",
        "lastUpdatedAt": "2025-11-25T00:00:00Z",
        "ttl": 60_000,
        "pollInterval": 100,
    })
}
