//! How answers are told: as data and as readable text, and no longer than the caller wants.

mod cursor;
mod text;
mod visible;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_protocol::types::{Annotations, CallToolResult, ContentBlock, TextContent};
use turnbuckle_server::{IntoOutput, Output, ToolError};

pub(crate) use cursor::Place;
pub(crate) use text::{cut, one_line, plural, time};
pub(crate) use visible::{quoted, visible};

/// Tokens that an answer has at most, unless the caller says.
const MAX_TOKENS: usize = 4_000;

/// Tags of an item that is told in a line, and the length of each.
const FEW_TAGS: usize = 8;
const SHORT_TAG: usize = 40;

/// What can be told in words as well as in data.
pub(crate) trait Readable {
    /// The text that clients show which read no data. Compact, and as complete as the data.
    fn text(&self) -> String;
}

/// A tool's result: the data with its schema, and beside it the text.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Readable + Serialize + JsonSchema + Send + 'static> IntoOutput for Answer<T> {
    fn output_schema() -> Option<Map<String, Value>> {
        let mut schema = <T as IntoOutput>::output_schema()?;
        schema.values_mut().for_each(shorten);
        Some(schema)
    }

    fn into_output(self, _promised: bool) -> Result<Output, ToolError> {
        let data = serde_json::to_value(&self.0)?;
        let text = self.0.text();
        let copy = (!is_json_of(&data, &text)).then(|| text_copy(&data));
        let content: Vec<_> = [ContentBlock::text(text)].into_iter().chain(copy).collect();
        Ok(CallToolResult::new(content).structured_content(data).into())
    }
}

/// The JSON of the data as a text block, which the specification recommends beside structured content.
///
/// Before 2025-06-18 there is no structured content, and since then no capability says that a client reads it, so every
/// client gets the text. The priority tells those which know annotations that they can do without.
fn text_copy(data: &Value) -> ContentBlock {
    let annotations = Annotations::new().priority(0.0);
    ContentBlock::Text(TextContent::new(data.to_string()).annotations(annotations))
}

/// Says whether a text is the JSON of the data already, as that of the debug tools is.
fn is_json_of(data: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|said| said == *data)
}

/// Drops what says little to a reader of answers: that a count is not negative, how wide a number is, that a map takes
/// anything, and which members every item has.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|key, value| match key.as_str() {
                // Members of answers that are called like this are described by an object.
                "minimum" => !value.is_number(),
                "format" => !value.is_string(),
                "required" => !value.is_array(),
                "additionalProperties" => *value != true,
                _ => true,
            });
            members.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

// How much is told of each item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ContentMode {
    #[default]
    Minimal,
    Preview,
    Full,
}

impl ContentMode {
    fn shorter(self) -> Option<Self> {
        match self {
            Self::Minimal => None,
            Self::Preview => Some(Self::Minimal),
            Self::Full => Some(Self::Preview),
        }
    }
}

// How much the caller wants to read. What documents this type would be listed with every tool.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Wanted {
    /// Default minimal: a line each.
    pub(crate) content_mode: Option<ContentMode>,
    /// Default 4000.
    #[schemars(range(min = 200))]
    pub(crate) max_tokens: Option<usize>,
    /// From next_cursor.
    pub(crate) cursor: Option<String>,
}

impl Wanted {
    /// Shapes items until the caller has read enough; the first is shortened rather than left out.
    ///
    /// The size of what a model reads is not known here. Four bytes of data to a token is a usual estimate, and the text
    /// of an item is shorter than its data.
    pub(crate) fn fit<I, T: Serialize>(
        &self,
        items: &[I],
        shape: impl Fn(&I, ContentMode) -> T,
    ) -> Vec<T> {
        let mut room = self.max_tokens.unwrap_or(MAX_TOKENS).saturating_mul(4);
        let mut shown = Vec::new();
        for item in items {
            let is_first = shown.is_empty();
            let mut mode = Some(self.content_mode.unwrap_or_default());
            let fitting = loop {
                let Some(tried) = mode else { break None };
                let shaped = shape(item, tried);
                let size = size(&shaped);
                // Without a first item there would be no place to go on from.
                let is_last_form = is_first && tried.shorter().is_none();
                if size <= room || is_last_form {
                    break Some((shaped, size));
                }
                mode = tried.shorter().filter(|_| is_first);
            };
            let Some((shaped, size)) = fitting else { break };
            room = room.saturating_sub(size);
            shown.push(shaped);
        }
        shown
    }
}

/// The tags of an item: all, or a few where a line is all that is told of it.
pub(crate) fn tags(all: &[String], mode: ContentMode) -> Vec<String> {
    match mode {
        ContentMode::Minimal => {
            let few = all.iter().take(FEW_TAGS);
            few.map(|tag| cut(tag, SHORT_TAG).into_owned()).collect()
        }
        ContentMode::Preview | ContentMode::Full => all.to_vec(),
    }
}

/// The bytes of something as data, with the comma after it.
fn size(shaped: &impl Serialize) -> usize {
    serde_json::to_string(shaped).map_or(usize::MAX, |json| json.len() + 1)
}

#[cfg(test)]
mod tests;
