//! 2025-11-25: the last revision with `initialize`.
//!
//! It lacks cache hints and input requests in results, and structured content must be an object. It has experimental
//! tasks of its own; the conversions at the end translate them.

use serde_json::{Map, Value, json};

use super::adapter::RevisionAdapter;
use crate::{
    meta::{Meta, keys},
    types::{
        CacheScope, CallToolResult, ClientCapabilities, ContentBlock, ElicitParams, InputResponses,
        JsonObject, ServerCapabilities, Tool,
        tasks::{self, legacy},
    },
};

/// Keys of every modern message that sessions do not use.
const MODERN_KEYS: [&str; 6] = [
    keys::PROTOCOL_VERSION,
    keys::CLIENT_INFO,
    keys::CLIENT_CAPABILITIES,
    keys::LOG_LEVEL,
    keys::SERVER_INFO,
    keys::SUBSCRIPTION_ID,
];

/// Removes the additions of 2026-07-28.
pub(super) struct DowngradeTo2025_11_25;

impl RevisionAdapter for DowngradeTo2025_11_25 {
    fn meta(&self, meta: &mut Meta) {
        if !meta.is_empty() {
            for key in MODERN_KEYS {
                meta.remove(key);
            }
        }
    }

    fn caching(&self, ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>) {
        *ttl_ms = None;
        *scope = None;
    }

    fn input_responses(&self, responses: &mut Option<InputResponses>, state: &mut Option<String>) {
        *responses = None;
        *state = None;
    }

    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        without_tasks(&mut capabilities.extensions);
    }

    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        without_tasks(&mut capabilities.extensions);
    }

    fn tool(&self, tool: &mut Tool) {
        only_object_properties(&mut tool.input_schema);
        // The tool can be called without its output schema; its structured content is removed below.
        tool.output_schema = tool.output_schema.take().filter(has_object_root);
        if let Some(schema) = &mut tool.output_schema {
            only_object_properties(schema);
        }
    }

    fn call_result(&self, result: &mut CallToolResult) {
        let Some(value) = &result.structured_content else {
            return;
        };
        if !value.is_object() && result.content.is_empty() {
            result.content.push(ContentBlock::text(value.to_string()));
        }
    }

    fn structured_content(&self, content: &mut Option<Value>) {
        *content = content.take().filter(Value::is_object);
    }

    fn block(&self, block: &mut ContentBlock) {
        if let ContentBlock::Unknown(value) = block {
            *block = ContentBlock::text(value.to_string());
        }
    }

    fn elicit(&self, params: &mut ElicitParams) {
        // Required here. Servers that send a completion notification set it; for all others the URL is a sufficient
        // id.
        if let ElicitParams::Url(url) = params {
            url.elicitation_id.get_or_insert_with(|| url.url.clone());
        }
    }
}

/// Upgrades payloads of this revision.
pub(super) struct UpgradeFrom2025_11_25;

impl RevisionAdapter for UpgradeFrom2025_11_25 {
    // The extension is ignored before 2026-07-28.
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        without_tasks(&mut capabilities.extensions);
    }

    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        without_tasks(&mut capabilities.extensions);
    }
}

fn without_tasks(extensions: &mut Option<JsonObject>) {
    if let Some(declared) = extensions {
        declared.shift_remove(tasks::EXTENSION);
        if declared.is_empty() {
            *extensions = None;
        }
    }
}

fn has_object_root(schema: &JsonObject) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Replaces the boolean schemas `true` and `false`, because properties must be objects here.
fn only_object_properties(schema: &mut JsonObject) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut() {
        match property {
            Value::Bool(true) => *property = Value::Object(Map::new()),
            Value::Bool(false) => *property = json!({ "not": {} }),
            _ => {}
        }
    }
}

impl From<tasks::Task> for legacy::Task {
    fn from(task: tasks::Task) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
        }
    }
}

impl From<legacy::Task> for tasks::Task {
    fn from(task: legacy::Task) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl,
            poll_interval_ms: task.poll_interval,
        }
    }
}

impl From<tasks::CreateTaskResult> for legacy::CreateTaskResult {
    fn from(created: tasks::CreateTaskResult) -> Self {
        Self::new(created.task).meta(created.meta)
    }
}

impl From<legacy::CreateTaskResult> for tasks::CreateTaskResult {
    fn from(created: legacy::CreateTaskResult) -> Self {
        Self::new(created.task.into()).meta(created.meta)
    }
}

/// Converts the status; a tool result with `isError` is a failure here. The result itself is requested with
/// `tasks/result`.
impl From<tasks::GetTaskResult> for legacy::GetTaskResult {
    fn from(got: tasks::GetTaskResult) -> Self {
        let mut task = legacy::Task::from(got.task);
        let failed = |result: &Value| result.get("isError") == Some(&Value::Bool(true));
        if got.result.as_ref().is_some_and(failed) {
            task.status = tasks::TaskStatus::Failed;
        }
        Self::new(task).meta(got.meta)
    }
}
