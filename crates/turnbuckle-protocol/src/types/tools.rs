//! Tools: what they are, how they are called, what they answer.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{
    CacheScope, ContentBlock, Cursor, Icon, InputResponses, JsonObject, number::integer,
    setters::setters, tasks::legacy::TaskMetadata,
};
use crate::meta::Meta;

/// A tool, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name it is called by.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does; models read this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; its root is an object.
    pub input_schema: JsonObject,
    /// The JSON Schema of its structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonObject>,
    /// Hints about its behaviour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be run (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures that stand for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Tool {
    /// Creates a tool from its name and the JSON Schema of its arguments.
    ///
    /// The root of the schema has to be `"type": "object"`; the member is added if it is missing.
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

/// Hints about what a tool does; not to be trusted from an unknown server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is the same as calling it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond a closed set of things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Creates annotations that say nothing yet.
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

/// How a tool may be run (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether a call may, must or must not become a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

setters!(ToolExecution { optional { task_support: TaskSupport } });

/// Whether a call may, must or must not become a task (2025-11-25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// It must not. The default.
    #[default]
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// The result of `tools/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// One page of tools.
    pub tools: Vec<Tool>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListToolsResult {
    /// Creates a page.
    pub fn new(tools: impl Into<Vec<Tool>>) -> Self {
        Self {
            tools: tools.into(),
            ..Self::default()
        }
    }
}

setters!(ListToolsResult {
    optional {
        next_cursor: Cursor,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// Parameters of `tools/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// Answers to what an earlier round asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the earlier round wants back, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Asks for a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What `_meta` carries.
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
    /// What the model reads. Written even when empty; a peer that leaves it out is understood.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The same as data: any JSON value, also null.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// Whether the tool failed; the content says how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What `_meta` carries.
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

    /// Creates a failure that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// Creates a result from data, with its JSON text for peers and models that read only content.
    pub fn structured(value: Value) -> Self {
        Self::text(value.to_string()).structured_content(value)
    }

    /// Says whether the tool failed.
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

/// Reads a member that is there, so that null is a value and not an absence.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
