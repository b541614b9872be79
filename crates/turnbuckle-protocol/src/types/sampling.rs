//! Sampling: a server requests a completion from the model of the client.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ContentBlock, JsonObject, Role, Tool, lenient_number, lenient_number::integer,
    tasks::legacy::TaskMetadata,
};
use crate::meta::Meta;

/// Parameters of `sampling/createMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Model preferences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The context of servers to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature: Option<f64>,
    /// The maximum number of tokens to sample.
    #[serde(deserialize_with = "integer::required")]
    pub max_tokens: u64,
    /// Sequences that stop the generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Additional data for the provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools the model may use (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// The tool choice (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Requests a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateMessageParams {
    /// Requests the next message of a conversation.
    pub fn new(messages: impl Into<Vec<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into(),
            max_tokens,
            ..Self::default()
        }
    }
}

setters!(CreateMessageParams {
    optional {
        model_preferences: ModelPreferences,
        system_prompt: String,
        include_context: IncludeContext,
        temperature: f64,
        stop_sequences: Vec<String>,
        metadata: JsonObject,
        tools: Vec<Tool>,
        tool_choice: ToolChoice,
        task: TaskMetadata,
    }
    plain { meta: Meta }
});

/// One message of a sampled conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The role.
    pub role: Role,
    /// The content; one block is serialized as an object, several as an array.
    #[serde(with = "one_or_many")]
    pub content: Vec<ContentBlock>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SamplingMessage {
    /// Creates a message of one block.
    pub fn new(role: Role, content: impl Into<ContentBlock>) -> Self {
        Self::with_blocks(role, [content.into()])
    }

    /// Creates a message of several blocks (since 2025-11-25).
    pub fn with_blocks(role: Role, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            role,
            content: content.into(),
            meta: Meta::default(),
        }
    }

    /// Creates a message of the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

setters!(SamplingMessage { plain { meta: Meta } });

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The role: the model.
    pub role: Role,
    /// The content; one block is serialized as an object, several as an array.
    #[serde(with = "one_or_many")]
    pub content: Vec<ContentBlock>,
    /// The model that was used.
    pub model: String,
    /// The stop reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateMessageResult {
    /// Creates a result of one block.
    pub fn new(model: impl Into<String>, content: impl Into<ContentBlock>) -> Self {
        Self::with_blocks(model, [content.into()])
    }

    /// Creates a result of several blocks (since 2025-11-25).
    pub fn with_blocks(model: impl Into<String>, content: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: Meta::default(),
        }
    }

    /// Returns the text blocks, joined.
    pub fn text(&self) -> String {
        let blocks = self.content.iter().filter_map(ContentBlock::as_text);
        blocks.collect::<Vec<_>>().join("\n")
    }
}

setters!(CreateMessageResult {
    optional { stop_reason: StopReason }
    plain { meta: Meta }
});

/// The reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model ended its turn.
    EndTurn,
    /// A stop sequence occurred.
    StopSequence,
    /// The maximum number of tokens was reached.
    MaxTokens,
    /// The model calls a tool.
    ToolUse,
    /// Another reason, in the terms of the provider.
    Other(String),
}

impl StopReason {
    /// Returns the name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "endTurn",
            Self::StopSequence => "stopSequence",
            Self::MaxTokens => "maxTokens",
            Self::ToolUse => "toolUse",
            Self::Other(reason) => reason,
        }
    }
}

impl From<&str> for StopReason {
    fn from(reason: &str) -> Self {
        match reason {
            "endTurn" => Self::EndTurn,
            "stopSequence" => Self::StopSequence,
            "maxTokens" => Self::MaxTokens,
            "toolUse" => Self::ToolUse,
            _ => Self::Other(reason.to_owned()),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|reason| Self::from(&*reason))
    }
}

/// The context of servers that a client should include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// None.
    None,
    /// The context of the requesting server.
    ThisServer,
    /// The context of all servers.
    AllServers,
}

/// The use of tools by a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

setters!(ToolChoice { optional { mode: ToolChoiceMode } });

impl From<ToolChoiceMode> for ToolChoice {
    fn from(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

/// Permission or obligation of a model to use tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// The model decides. The default.
    Auto,
    /// The model uses at least one tool.
    Required,
    /// The model uses no tools.
    None,
}

/// Model preferences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names or parts of names, most preferred first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// The importance of low cost, from 0 to 1.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost_priority: Option<f64>,
    /// The importance of speed, from 0 to 1.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub speed_priority: Option<f64>,
    /// The importance of intelligence, from 0 to 1.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub intelligence_priority: Option<f64>,
}

impl ModelPreferences {
    /// Creates empty preferences.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ModelPreferences {
    optional {
        hints: Vec<ModelHint>,
        cost_priority: f64,
        speed_priority: f64,
        intelligence_priority: f64,
    }
});

/// A model hint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelHint {
    /// A name or part of a name, such as `sonnet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ModelHint {
    /// Creates a hint from a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
        }
    }
}

/// Serializes one block as an object, several as an array.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use serde_json::Value;

    use super::ContentBlock;
    use crate::json;

    pub(super) fn serialize<S: Serializer>(
        blocks: &[ContentBlock],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match blocks {
            [block] => block.serialize(serializer),
            blocks => blocks.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<ContentBlock>, D::Error> {
        match Value::deserialize(deserializer)? {
            many @ Value::Array(_) => json::from_value(&many),
            one => json::from_value(&one).map(|block| vec![block]),
        }
        .map_err(D::Error::custom)
    }
}
