//! Content blocks: what tools return, prompts say and models read.

mod reading;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Annotations, JsonObject, Resource, ResourceContents, setters::setters};
use crate::meta::Meta;

/// One piece of content.
///
/// Tool results and prompt messages use the first five kinds; `ToolUse` and `ToolResult` appear in
/// sampling messages only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Sound.
    Audio(AudioContent),
    /// The address of a resource that the server can read.
    ResourceLink(Resource),
    /// A resource itself.
    Resource(EmbeddedResource),
    /// The model wants a tool called.
    ToolUse(ToolUseContent),
    /// What the tool answered.
    ToolResult(ToolResultContent),
    /// A kind this library does not know, passed on unchanged.
    #[serde(untagged)]
    Unknown(Value),
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates a picture from its Base64 form.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates sound from its Base64 form.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Creates a block that holds a resource.
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

/// Text, in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What `_meta` carries.
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

/// A picture, in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes in Base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ImageContent {
    /// Creates a picture from its Base64 form.
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

/// Sound, in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes in Base64.
    pub data: String,
    /// The media type.
    pub mime_type: String,
    /// Hints about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl AudioContent {
    /// Creates sound from its Base64 form.
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

/// A resource with its contents, in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// Hints about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl EmbeddedResource {
    /// Embeds a resource.
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

/// A tool call that the model asks for, in a sampling message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// Names this call, so that its result can be matched.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: JsonObject,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolUseContent {
    /// Asks for a tool call.
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
    /// The call that this answers.
    pub tool_use_id: String,
    /// What the tool returned.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// What the tool returned, as data.
    #[serde(
        default,
        deserialize_with = "super::tools::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ToolResultContent {
    /// Answers a tool call.
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
