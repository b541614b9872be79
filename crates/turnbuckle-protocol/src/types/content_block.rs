//! Content blocks of tool results, prompts and sampling messages.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use super::{Annotations, JsonObject, Resource, ResourceContents};
use crate::{json, meta::Meta};

/// A content block.
///
/// Tool results and prompt messages use the first five kinds; `ToolUse` and `ToolResult` appear in
/// sampling messages only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// A link to a resource of the server.
    ResourceLink(Resource),
    /// A resource with its contents.
    Resource(EmbeddedResource),
    /// A tool call of the model.
    ToolUse(ToolUseContent),
    /// The result of a tool call.
    ToolResult(ToolResultContent),
    /// An unknown kind, preserved unchanged.
    #[serde(untagged)]
    Unknown(Value),
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from Base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates audio from Base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Creates a block with the contents of a resource.
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// Returns the text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// A text block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TextContent {
    /// Creates text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            annotations: None,
            meta: Meta::default(),
        }
    }
}

setters!(TextContent {
    optional { annotations: Annotations }
    plain { meta: Meta }
});

/// An image block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes in Base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ImageContent {
    /// Creates an image from Base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: Meta::default(),
        }
    }
}

setters!(ImageContent {
    optional { annotations: Annotations }
    plain { meta: Meta }
});

/// An audio block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes in Base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl AudioContent {
    /// Creates audio from Base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: Meta::default(),
        }
    }
}

setters!(AudioContent {
    optional { annotations: Annotations }
    plain { meta: Meta }
});

/// A block with the contents of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The URI of the resource.
    pub resource: ResourceContents,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl EmbeddedResource {
    /// Creates a block from resource contents.
    pub fn new(resource: impl Into<ResourceContents>) -> Self {
        Self {
            resource: resource.into(),
            annotations: None,
            meta: Meta::default(),
        }
    }
}

setters!(EmbeddedResource {
    optional { annotations: Annotations }
    plain { meta: Meta }
});

/// A tool call of the model, in a sampling message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of the call, repeated in its result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub input: JsonObject,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolUseContent {
    /// Creates a tool call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input,
            meta: Meta::default(),
        }
    }
}

setters!(ToolUseContent { plain { meta: Meta } });

/// The result of a tool call, in a sampling message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The id of the call.
    pub tool_use_id: String,
    /// The content that the tool returned.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The structured content that the tool returned.
    #[serde(
        default,
        deserialize_with = "super::tools::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// Set if the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolResultContent {
    /// Creates the result of a tool call.
    pub fn new(tool_use_id: impl Into<String>, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            structured_content: None,
            is_error: None,
            meta: Meta::default(),
        }
    }
}

setters!(ToolResultContent {
    optional {
        structured_content: Value,
        is_error: bool,
    }
    plain { meta: Meta }
});

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockVisitor)
    }
}

/// The name of a member.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum FirstMember {
    Type,
    Other(String),
}

/// The `type` of a block.
///
/// Selected by name: a malformed text block is an error, not an unknown kind.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum BlockKind {
    Text,
    Image,
    Audio,
    ResourceLink,
    Resource,
    ToolUse,
    ToolResult,
    Other(String),
}

struct BlockVisitor;

impl<'de> Visitor<'de> for BlockVisitor {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        match map.next_key()? {
            // Most peers write `type` first, so that the rest is deserialized without buffering.
            Some(FirstMember::Type) => {
                let kind: BlockKind = map.next_value()?;
                kind.read(MapAccessDeserializer::new(map))
            }
            Some(FirstMember::Other(name)) => read_buffered(name, map),
            None => Err(A::Error::custom(NO_TYPE)),
        }
    }
}

const NO_TYPE: &str = "a content block needs a `type`";

impl BlockKind {
    /// Deserializes the other members; `type` may be among them.
    fn read<'de, D: Deserializer<'de>>(self, rest: D) -> Result<ContentBlock, D::Error> {
        Ok(match self {
            Self::Text => ContentBlock::Text(Deserialize::deserialize(rest)?),
            Self::Image => ContentBlock::Image(Deserialize::deserialize(rest)?),
            Self::Audio => ContentBlock::Audio(Deserialize::deserialize(rest)?),
            Self::ResourceLink => ContentBlock::ResourceLink(Deserialize::deserialize(rest)?),
            Self::Resource => ContentBlock::Resource(Deserialize::deserialize(rest)?),
            Self::ToolUse => ContentBlock::ToolUse(Deserialize::deserialize(rest)?),
            Self::ToolResult => ContentBlock::ToolResult(Deserialize::deserialize(rest)?),
            Self::Other(kind) => {
                let mut members = Map::from_iter([("type".to_owned(), Value::String(kind))]);
                members.extend(Map::<String, Value>::deserialize(rest)?);
                ContentBlock::Unknown(Value::Object(members))
            }
        })
    }
}

/// Deserializes a block of a known kind.
struct BlockSeed(BlockKind);

impl<'de> DeserializeSeed<'de> for BlockSeed {
    type Value = ContentBlock;

    fn deserialize<D: Deserializer<'de>>(self, rest: D) -> Result<ContentBlock, D::Error> {
        self.0.read(rest)
    }
}

/// Deserializes a block with `type` after other members, or without it.
fn read_buffered<'de, A: MapAccess<'de>>(
    first: String,
    mut map: A,
) -> Result<ContentBlock, A::Error> {
    let mut members = Map::new();
    members.insert(first, map.next_value()?);
    while let Some((name, value)) = map.next_entry()? {
        members.insert(name, value);
    }
    let kind = members.get("type");
    let kind = kind.ok_or_else(|| A::Error::custom(NO_TYPE))?;
    let kind = json::from_value(kind).map_err(|error| error.within("type"));
    let block = kind.and_then(|kind: BlockKind| {
        let whole = Value::Object(members);
        match kind {
            BlockKind::Other(_) => Ok(ContentBlock::Unknown(whole)),
            known => json::read_value_with(whole, BlockSeed(known)),
        }
    });
    block.map_err(A::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &str) -> Result<ContentBlock, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn type_may_be_at_any_position() {
        let expected = ContentBlock::text("a\nb");

        for json in [
            r#"{"type":"text","text":"a\nb"}"#,
            r#"{"text":"a\nb","type":"text"}"#,
            r#"{"more":[1],"type":"text","text":"a\nb"}"#,
            r#"{"ty\u0070e":"te\u0078t","text":"a\nb"}"#,
        ] {
            assert_eq!(read(json), Ok(expected.clone()), "{json}");
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(
                serde_json::from_value::<ContentBlock>(value).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn an_unknown_kind_is_preserved() {
        for json in [
            r#"{"type":"hologram","b":1,"a":[null]}"#,
            r#"{"b":1,"type":"hologram","a":[null]}"#,
        ] {
            let block = read(json).unwrap();

            assert_eq!(serde_json::to_string(&block).unwrap(), json);
        }
    }

    #[test]
    fn a_block_without_a_type_or_with_members_of_another_is_rejected() {
        for json in [
            json!({}),
            json!({ "text": "a" }),
            json!({ "type": null, "text": "a" }),
            json!({ "text": "a", "type": 1 }),
            json!({ "type": ["text"], "text": "a" }),
            json!({ "type": "text" }),
            json!({ "data": "", "type": "text" }),
            json!({ "type": "image", "data": "" }),
            json!("text"),
            json!([]),
            json!(null),
        ] {
            assert!(read(&json.to_string()).is_err(), "{json}");
        }
    }
}
