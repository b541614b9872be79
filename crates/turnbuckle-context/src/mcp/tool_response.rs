//! Tool responses: structured content, a readable text and a size limit set by the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_protocol::types::{Annotations, CallToolResult, ContentBlock, TextContent};
use turnbuckle_server::{IntoToolResult, ToolError, ToolResult};

use super::display::truncate;
use crate::{ContextError, owner::short_hash};

/// Default token limit of one response.
const MAX_TOKENS: usize = 4_000;

/// Maximum number of tags, and of characters per tag, in `minimal` mode.
const MAX_MINIMAL_TAGS: usize = 8;
const MAX_MINIMAL_TAG_CHARS: usize = 40;

/// A tool result that also has a text form.
pub(crate) trait ToText {
    /// Returns the text for clients that do not read structured content. It is compact and as complete as the data.
    fn to_text(&self) -> String;
}

/// A tool result: structured content with its schema, followed by the text form.
pub(crate) struct ToolResponse<T>(pub(crate) T);

impl<T: ToText + Serialize + JsonSchema + Send + 'static> IntoToolResult for ToolResponse<T> {
    fn output_schema() -> Option<Map<String, Value>> {
        let mut schema = Value::Object(<T as IntoToolResult>::output_schema()?);
        compact_schema(&mut schema);
        schema.as_object().cloned()
    }

    fn into_tool_result(self, _promised: bool) -> Result<ToolResult, ToolError> {
        let data = serde_json::to_value(&self.0)?;
        let text = self.0.to_text();
        let copy = (!is_same_json(&data, &text)).then(|| text_copy(&data));
        let content: Vec<_> = [ContentBlock::text(text)].into_iter().chain(copy).collect();
        Ok(CallToolResult::new(content).structured_content(data).into())
    }
}

/// Returns the JSON of the data as a text block, as the specification recommends for structured content.
///
/// Revisions before 2025-06-18 do not have structured content, and later ones lack a client capability for it, so
/// every client gets the text. The priority tells clients that read annotations that the block is redundant.
fn text_copy(data: &Value) -> ContentBlock {
    let annotations = Annotations::new().priority(0.0);
    ContentBlock::Text(TextContent::new(data.to_string()).annotations(annotations))
}

/// Returns whether the text already is the JSON of the data, as for some debug tools.
fn is_same_json(data: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *data)
}

/// Removes keywords that do not help a model to read a result: `minimum`, `format`, `required`, `description` and
/// `additionalProperties: true`.
fn compact_schema(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|key, value| match key.as_str() {
                // A result member with one of these names has a schema object as its value.
                "minimum" => !value.is_number(),
                "format" | "description" => !value.is_string(),
                "required" => !value.is_array(),
                "additionalProperties" => *value != true,
                _ => true,
            });
            members.values_mut().for_each(compact_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(compact_schema),
        _ => {}
    }
}

// The amount of text per item in a result.
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
    fn shorter_mode(self) -> Option<Self> {
        match self {
            Self::Minimal => None,
            Self::Preview => Some(Self::Minimal),
            Self::Full => Some(Self::Preview),
        }
    }
}

// Options of the caller for the size of a result. Not a doc comment: it would be repeated in the schema of every tool.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct ResponseOptions {
    /// Default minimal: one line each.
    pub(crate) content_mode: Option<ContentMode>,
    /// Default 4000.
    #[schemars(range(min = 200))]
    pub(crate) max_tokens: Option<usize>,
    /// From next_cursor.
    pub(crate) cursor: Option<String>,
}

impl ResponseOptions {
    /// Formats items until the token limit is reached. The first item is shortened instead of omitted.
    ///
    /// The tokenizer of the model is unknown here. Four bytes of JSON per token is a common estimate, and the text of
    /// an item is shorter than its JSON.
    pub(crate) fn fit_to_limit<I, T: Serialize>(
        &self,
        items: &[I],
        shape: impl Fn(&I, ContentMode) -> T,
    ) -> Vec<T> {
        let mut remaining = self.max_tokens.unwrap_or(MAX_TOKENS).saturating_mul(4);
        let mut fitted = Vec::new();
        for item in items {
            let is_first = fitted.is_empty();
            let mut mode = Some(self.content_mode.unwrap_or_default());
            let fitting = loop {
                let Some(tried) = mode else { break None };
                let shaped = shape(item, tried);
                let size = json_size(&shaped);
                // Paging needs at least one item per page to make progress.
                let is_last_form = is_first && tried.shorter_mode().is_none();
                if size <= remaining || is_last_form {
                    break Some((shaped, size));
                }
                mode = tried.shorter_mode().filter(|_| is_first);
            };
            let Some((shaped, size)) = fitting else { break };
            remaining = remaining.saturating_sub(size);
            fitted.push(shaped);
        }
        fitted
    }
}

/// Returns all tags of an item, or a few short ones in `minimal` mode.
pub(crate) fn tags_for_mode(all: &[String], mode: ContentMode) -> Vec<String> {
    match mode {
        ContentMode::Minimal => {
            let few = all.iter().take(MAX_MINIMAL_TAGS);
            few.map(|tag| truncate(tag, MAX_MINIMAL_TAG_CHARS).into_owned())
                .collect()
        }
        ContentMode::Preview | ContentMode::Full => all.to_vec(),
    }
}

/// Returns the size of the value as JSON, including a separating comma.
fn json_size(shaped: &impl Serialize) -> usize {
    serde_json::to_string(shaped).map_or(usize::MAX, |json| json.len() + 1)
}

/// Maximum offset of a search page.
const MAX_OFFSET: usize = 1_000;

/// A position in the results of one search.
///
/// The cursor contains the number of items before it and a hash of the search, so that it is rejected for any other
/// search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SearchCursor {
    search_hash: String,
    offset: usize,
}

impl SearchCursor {
    /// Parses a cursor that was returned for the search described by `parts`. Without a cursor, the position is the
    /// start.
    pub(crate) fn parse(cursor: Option<&str>, parts: &[&str]) -> Result<Self, ContextError> {
        let search_hash = short_hash(parts);
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(Self {
                search_hash,
                offset: 0,
            });
        };
        let cursor_parts = cursor
            .split_once('-')
            .and_then(|(offset, hash)| Some((offset.parse::<usize>().ok()?, hash)))
            .filter(|(offset, hash)| *offset <= MAX_OFFSET && *hash == search_hash);
        match cursor_parts {
            Some((offset, _)) => Ok(Self {
                search_hash,
                offset,
            }),
            None => Err(ContextError::invalid(
                "`cursor` does not belong to this search; omit it to start with the best results",
            )),
        }
    }

    /// Returns the number of items before this position.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns how many items to fetch in order to return `limit` items and know whether more exist.
    pub(crate) fn fetch_limit(&self, limit: usize) -> usize {
        self.offset + limit + 1
    }

    /// Returns the cursor after `shown` more items, or `None` if no items follow.
    pub(crate) fn next_cursor(&self, shown: usize, found: usize) -> Option<String> {
        let offset = self.offset + shown;
        (shown > 0 && offset < found && offset <= MAX_OFFSET)
            .then(|| format!("{offset}-{}", self.search_hash))
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct SizedItem {
        text: String,
    }

    fn shape(item: &&str, mode: ContentMode) -> SizedItem {
        let most = match mode {
            ContentMode::Minimal => 10,
            ContentMode::Preview => 1_000,
            ContentMode::Full => usize::MAX,
        };
        SizedItem {
            text: item.chars().take(most).collect(),
        }
    }

    fn options(content_mode: ContentMode, max_tokens: usize) -> ResponseOptions {
        ResponseOptions {
            content_mode: Some(content_mode),
            max_tokens: Some(max_tokens),
            cursor: None,
        }
    }

    #[test]
    fn items_are_returned_up_to_the_limit() {
        let items = ["x"; 100];
        let fitted = options(ContentMode::Full, 200).fit_to_limit(&items, shape);
        assert_eq!(fitted.len(), 800 / r#"{"text":"x"},"#.len());
    }

    #[test]
    fn the_first_item_is_shortened_instead_of_omitted() {
        let long = "x".repeat(100_000);
        let fitted = options(ContentMode::Full, 500).fit_to_limit(&[&*long, &*long], shape);
        assert_eq!(fitted.len(), 1, "the next page starts with the second item");
        assert_eq!(fitted[0].text.len(), 1_000);
        let fitted = options(ContentMode::Full, 200).fit_to_limit(&[&*long], shape);
        assert_eq!(fitted[0].text.len(), 10);
    }

    #[test]
    fn the_first_item_is_returned_even_if_it_does_not_fit() {
        let fitted = options(ContentMode::Full, 0).fit_to_limit(&["x", "y"], shape);
        assert_eq!(fitted.len(), 1, "the next page starts after it");
        let many = vec!["t".repeat(100); 50];
        let few = tags_for_mode(&many, ContentMode::Minimal);
        assert!(few.len() == MAX_MINIMAL_TAGS && few[0].len() <= MAX_MINIMAL_TAG_CHARS + 3);
        assert_eq!(tags_for_mode(&many, ContentMode::Full), many);
    }

    #[test]
    fn a_cursor_is_valid_for_its_own_search_only() {
        let start = SearchCursor::parse(None, &["a", "b"]).unwrap();
        let cursor = start.next_cursor(5, 6).unwrap();
        assert_eq!(
            SearchCursor::parse(Some(&cursor), &["a", "b"])
                .unwrap()
                .offset(),
            5
        );
        assert!(SearchCursor::parse(Some(&cursor), &["ab", ""]).is_err());
        assert_eq!(start.next_cursor(6, 6), None);
        assert_eq!(start.next_cursor(0, 6), None, "a cursor always advances");
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for text in [
            "-",
            "x",
            "1",
            "99999999999999999999-aa",
            "5-0000000000000000",
        ] {
            assert!(SearchCursor::parse(Some(text), &["a"]).is_err(), "{text}");
        }
    }
}
