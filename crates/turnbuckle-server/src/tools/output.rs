//! What a tool may return.

use std::any::Any;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Meta,
    types::{CallToolResult, ContentBlock},
};

use super::ToolError;
use crate::schema;

/// Content blocks, structured content and `_meta` of a tool's result, put together by hand.
///
/// ```
/// use turnbuckle_server::Output;
///
/// let output = Output::text("a red dot").image("iVBORw0KGgo=", "image/png");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Output {
    pub(crate) result: CallToolResult,
}

impl Output {
    /// No content at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().block(ContentBlock::text(text))
    }

    /// Structured content and its JSON as text, for a tool that declared an output schema of its own.
    pub fn structured(value: Value) -> Self {
        let mut output = Self::text(value.to_string());
        output.result.structured_content = Some(value);
        output
    }

    /// A result that tells the model what went wrong.
    pub fn error(message: impl Into<String>) -> Self {
        let mut output = Self::text(message);
        output.result.is_error = Some(true);
        output
    }

    /// Adds an image, its bytes in Base64.
    #[must_use]
    pub fn image(self, base64: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.block(ContentBlock::image(base64, mime_type))
    }

    /// Adds a recording, its bytes in Base64.
    #[must_use]
    pub fn audio(self, base64: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.block(ContentBlock::audio(base64, mime_type))
    }

    /// Adds any content block.
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

impl From<ContentBlock> for Output {
    fn from(block: ContentBlock) -> Self {
        Self::default().block(block)
    }
}

impl From<Vec<ContentBlock>> for Output {
    fn from(content: Vec<ContentBlock>) -> Self {
        let mut output = Self::default();
        output.result.content = content;
        output
    }
}

impl From<CallToolResult> for Output {
    fn from(result: CallToolResult) -> Self {
        Self { result }
    }
}

/// What a tool's function may return: anything with a schema, or an [`Output`].
pub trait IntoOutput: Send + 'static {
    /// The schema that the tool's listing shows, if it promises structured output.
    fn output_schema() -> Option<Map<String, Value>>;

    /// Makes the result of it; `promised` says whether the listing has an output schema.
    fn into_output(self, promised: bool) -> Result<Output, ToolError>;
}

impl IntoOutput for Output {
    fn output_schema() -> Option<Map<String, Value>> {
        None
    }

    fn into_output(self, _promised: bool) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoOutput for T {
    fn output_schema() -> Option<Map<String, Value>> {
        let schema = schema::of_output::<T>();
        // Text is content, not structure: a schema would make clients look for `structuredContent`.
        (!is_text(&schema)).then_some(schema)
    }

    fn into_output(self, promised: bool) -> Result<Output, ToolError> {
        let mut value = Some(self);
        if let Some(text) = (&mut value as &mut dyn Any).downcast_mut::<Option<String>>() {
            return Ok(Output::text(text.take().unwrap_or_default()));
        }
        // Whoever promises structured output has to give it, also where this value happens to be a text or nothing.
        match serde_json::to_value(&value)? {
            Value::Null if !promised => Ok(Output::empty()),
            Value::String(text) if !promised => Ok(Output::text(text)),
            value => Ok(Output::structured(value)),
        }
    }
}

/// Says whether a schema describes text or nothing, and never anything else.
fn is_text(schema: &Map<String, Value>) -> bool {
    let is_text = |kind: &Value| kind == "string" || kind == "null";
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().all(is_text),
        Some(kind) => is_text(kind),
        None => false,
    }
}
