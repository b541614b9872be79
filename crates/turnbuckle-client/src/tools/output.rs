//! The output of a tool.

use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde_json::Value;
use turnbuckle_protocol::{
    json::{self, JsonError},
    meta::Meta,
    types::{CallToolResult, ContentBlock},
};

/// The output of a tool: content for a model, and optionally structured data.
///
/// A failed tool returns output too; [`is_error`](Self::is_error) is true then, and the content describes the failure.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    result: CallToolResult,
}

impl ToolOutput {
    /// Returns all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        let blocks = self.result.content.iter();
        let mut texts = blocks.filter_map(ContentBlock::as_text);
        let mut all = texts.next().unwrap_or_default().to_owned();
        for text in texts {
            all.push('\n');
            all.push_str(text);
        }
        all
    }

    /// Deserializes the structured content.
    ///
    /// # Errors
    ///
    /// If the tool returned no structured content, or content of another shape.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, StructuredError> {
        let value = self.structured_value().ok_or(StructuredError::Missing)?;
        json::from_value(value).map_err(StructuredError::Invalid)
    }

    /// Returns the structured content, if any; null counts as content.
    pub fn structured_value(&self) -> Option<&Value> {
        self.result.structured_content.as_ref()
    }

    /// Returns the content blocks.
    pub fn content(&self) -> &[ContentBlock] {
        &self.result.content
    }

    /// Returns whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.result.failed()
    }

    /// Returns the `_meta` of the result.
    pub fn meta(&self) -> &Meta {
        &self.result.meta
    }

    /// Returns the protocol type.
    pub fn into_inner(self) -> CallToolResult {
        self.result
    }
}

/// Dereferences to the protocol type.
impl Deref for ToolOutput {
    type Target = CallToolResult;

    fn deref(&self) -> &CallToolResult {
        &self.result
    }
}

impl From<CallToolResult> for ToolOutput {
    fn from(result: CallToolResult) -> Self {
        Self { result }
    }
}

/// The structured content cannot be deserialized.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StructuredError {
    /// The tool returned no structured content.
    #[error("the tool returned no structured content")]
    Missing,
    /// The structured content has another shape.
    #[error("the structured content has another shape: {0}")]
    Invalid(#[source] JsonError),
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Forecast {
        high: i32,
    }

    fn output(result: Value) -> ToolOutput {
        serde_json::from_value::<CallToolResult>(result)
            .unwrap()
            .into()
    }

    #[test]
    fn text_blocks_are_joined_and_others_are_left_out() {
        let output = output(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "", "mimeType": "image/png" },
            { "type": "text", "text": "two" },
        ] }));

        assert_eq!(output.text(), "one\ntwo");
        assert_eq!(output.content().len(), 3);
        assert!(!output.is_error());
    }

    #[test]
    fn structured_output_is_parsed_or_an_error() {
        let fits = output(json!({ "content": [], "structuredContent": { "high": 7 } }));
        let differs = output(json!({ "content": [], "structuredContent": null }));
        let missing = output(json!({ "content": [], "isError": true }));

        assert_eq!(fits.structured::<Forecast>().unwrap(), Forecast { high: 7 });
        assert_eq!(differs.structured::<Option<Forecast>>().unwrap(), None);
        assert!(matches!(
            differs.structured::<Forecast>(),
            Err(StructuredError::Invalid(_))
        ));
        assert!(matches!(
            missing.structured::<Forecast>(),
            Err(StructuredError::Missing)
        ));
        assert!(missing.is_error());
    }
}
