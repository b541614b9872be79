//! Tools: definitions, calls and results.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{ContentBlock, Icon, InputResponses, JsonObject, tasks::legacy::TaskMetadata};
use crate::meta::Meta;

/// A tool, as returned by `tools/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name, used by `tools/call`.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description; models read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments; its root is an object.
    pub input_schema: JsonObject,
    /// The JSON Schema of the structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonObject>,
    /// Hints about the behavior.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Execution options (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Tool {
    /// Creates a tool from its name and the JSON Schema of its arguments.
    ///
    /// The root of the schema must have `"type": "object"`; it is added if missing.
    pub fn new(name: impl Into<String>, mut input_schema: JsonObject) -> Self {
        input_schema
            .entry("type")
            .or_insert_with(|| Value::from("object"));
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            execution: None,
            icons: Vec::new(),
            meta: Meta::default(),
        }
    }
}

setters!(Tool {
    optional {
        title: String,
        description: String,
        output_schema: JsonObject,
        annotations: ToolAnnotations,
        execution: ToolExecution,
    }
    plain {
        icons: Vec<Icon>,
        meta: Meta,
    }
});

/// Hints about the behavior of a tool; do not trust those of an unknown server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool does not modify its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may make destructive changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating a call with the same arguments does not change anything further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external entities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Creates empty annotations.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ToolAnnotations {
    optional {
        title: String,
        read_only_hint: bool,
        destructive_hint: bool,
        idempotent_hint: bool,
        open_world_hint: bool,
    }
});

/// Execution options of a tool (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Task support of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

setters!(ToolExecution { optional { task_support: TaskSupport } });

/// Task support of a tool (2025-11-25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// A call must not become a task. The default.
    #[default]
    Forbidden,
    /// A call may become a task.
    Optional,
    /// A call must become a task.
    Required,
}

list_result! {
    /// The result of `tools/list`.
    pub struct ListToolsResult {
        /// One page of tools.
        pub tools: Vec<Tool>,
    }
}

/// Parameters of `tools/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// Responses to the input requests of the previous round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the previous round trip, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Requests a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CallToolParams {
    /// Calls a tool by name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            input_responses: None,
            request_state: None,
            task: None,
            meta: Meta::default(),
        }
    }
}

setters!(CallToolParams {
    optional {
        arguments: JsonObject,
        input_responses: InputResponses,
        request_state: String,
        task: TaskMetadata,
    }
    plain { meta: Meta }
});

/// The result of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The content for the model. Serialized even if empty; may be absent in received results.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The structured content: any JSON value, including null.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// Set if the tool failed; the content describes the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CallToolResult {
    /// Creates a result from content blocks.
    pub fn new(content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Creates a result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// Creates an error result that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// Creates a result with structured content, and its JSON text for peers and models that read only content.
    pub fn structured(value: Value) -> Self {
        Self::text(value.to_string()).structured_content(value)
    }

    /// Returns whether the tool failed.
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }
}

setters!(CallToolResult {
    optional {
        structured_content: Value,
        is_error: bool,
    }
    plain { meta: Meta }
});

/// Deserializes a present member, so that null is a value.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
