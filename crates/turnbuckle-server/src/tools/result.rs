//! Tool results.

use std::any::Any;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Meta,
    types::{CallToolResult, ContentBlock},
};

use super::ToolError;
use crate::tools::schema;

/// A tool result built from content blocks, structured content and `_meta`.
///
/// ```
/// use turnbuckle_server::ToolResult;
///
/// let output = ToolResult::text("a red dot").image("iVBORw0KGgo=", "image/png");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolResult {
    pub(crate) result: CallToolResult,
}

impl ToolResult {
    /// Creates a result without content.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().block(ContentBlock::text(text))
    }

    /// Creates a result with structured content and its JSON as text, for a tool with a custom output schema.
    pub fn structured(value: Value) -> Self {
        let mut output = Self::text(value.to_string());
        output.result.structured_content = Some(value);
        output
    }

    /// Creates an `isError` result with a message for the model.
    pub fn error(message: impl Into<String>) -> Self {
        let mut output = Self::text(message);
        output.result.is_error = Some(true);
        output
    }

    /// Adds an image, encoded in Base64.
    #[must_use]
    pub fn image(self, base64: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.block(ContentBlock::image(base64, mime_type))
    }

    /// Adds audio, encoded in Base64.
    #[must_use]
    pub fn audio(self, base64: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.block(ContentBlock::audio(base64, mime_type))
    }

    /// Adds a content block.
    #[must_use]
    pub fn block(mut self, block: impl Into<ContentBlock>) -> Self {
        self.result.content.push(block.into());
        self
    }

    /// Sets the result's `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.result.meta = meta;
        self
    }
}

impl From<ContentBlock> for ToolResult {
    fn from(block: ContentBlock) -> Self {
        Self::default().block(block)
    }
}

impl From<Vec<ContentBlock>> for ToolResult {
    fn from(content: Vec<ContentBlock>) -> Self {
        let mut output = Self::default();
        output.result.content = content;
        output
    }
}

impl From<CallToolResult> for ToolResult {
    fn from(result: CallToolResult) -> Self {
        Self { result }
    }
}

/// Implemented by the return types of tools: any type with a schema, or a [`ToolResult`].
pub trait IntoToolResult: Send + 'static {
    /// The output schema in the tool definition, if any.
    fn output_schema() -> Option<Map<String, Value>>;

    /// Converts to a result. `has_output_schema` is true if the definition has an output schema.
    fn into_tool_result(self, has_output_schema: bool) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn output_schema() -> Option<Map<String, Value>> {
        None
    }

    fn into_tool_result(self, _has_output_schema: bool) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoToolResult for T {
    fn output_schema() -> Option<Map<String, Value>> {
        let schema = schema::output_schema_for::<T>();
        // Text is content: with a schema, clients would expect `structuredContent`.
        (!is_text(&schema)).then_some(schema)
    }

    fn into_tool_result(self, has_output_schema: bool) -> Result<ToolResult, ToolError> {
        let mut value = Some(self);
        if let Some(text) = (&mut value as &mut dyn Any).downcast_mut::<Option<String>>() {
            return Ok(ToolResult::text(text.take().unwrap_or_default()));
        }
        // With an output schema structured content is required, even for text or null.
        match serde_json::to_value(&value)? {
            Value::Null if !has_output_schema => Ok(ToolResult::empty()),
            Value::String(text) if !has_output_schema => Ok(ToolResult::text(text)),
            value => Ok(ToolResult::structured(value)),
        }
    }
}

/// Returns whether a schema allows only strings and null.
fn is_text(schema: &Map<String, Value>) -> bool {
    let is_text = |kind: &Value| kind == "string" || kind == "null";
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().all(is_text),
        Some(kind) => is_text(kind),
        None => false,
    }
}
