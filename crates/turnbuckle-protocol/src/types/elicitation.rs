//! Elicitation: a server requests input from the user of the client, by a form or a URL.

mod fields;
mod schema;
mod select;

pub use fields::{BooleanSchema, NumberKind, NumberSchema, StringFormat, StringSchema};
pub use schema::{ElicitSchema, PrimitiveSchema};
pub use select::{EnumOption, MultiSelectSchema, SingleSelectSchema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::{JsonObject, tasks::legacy::TaskMetadata};
use crate::{json, meta::Meta};

/// Parameters of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Form elicitation. Serialized without `mode`, which every revision reads as a form.
    Form(ElicitFormParams),
    /// URL elicitation (since 2025-11-25).
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// Returns the message to the user.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }
}

impl From<ElicitFormParams> for ElicitParams {
    fn from(form: ElicitFormParams) -> Self {
        Self::Form(form)
    }
}

impl From<ElicitUrlParams> for ElicitParams {
    fn from(url: ElicitUrlParams) -> Self {
        Self::Url(url)
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.get("mode").map(Value::as_str) {
            None | Some(Some("form")) => json::from_value(&value).map(Self::Form),
            Some(Some("url")) => json::from_value(&value).map(Self::Url),
            Some(_) => return Err(D::Error::custom("`mode` is neither `form` nor `url`")),
        }
        .map_err(D::Error::custom)
    }
}

/// Parameters of a form elicitation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// The message to the user.
    pub message: String,
    /// The fields of the form.
    pub requested_schema: ElicitSchema,
    /// Requests a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitFormParams {
    /// Creates a form elicitation.
    pub fn new(message: impl Into<String>, requested_schema: ElicitSchema) -> Self {
        Self {
            message: message.into(),
            requested_schema,
            task: None,
            meta: Meta::default(),
        }
    }
}

setters!(ElicitFormParams {
    optional { task: TaskMetadata }
    plain { meta: Meta }
});

/// Parameters of a URL elicitation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    mode: UrlMode,
    /// The message to the user.
    pub message: String,
    /// The URL to open.
    pub url: String,
    /// The id of the elicitation (required in 2025-11-25, removed later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Requests a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// The only value of `mode` here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum UrlMode {
    #[serde(rename = "url")]
    Url,
}

impl ElicitUrlParams {
    /// Creates a URL elicitation.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            mode: UrlMode::Url,
            message: message.into(),
            url: url.into(),
            elicitation_id: None,
            task: None,
            meta: Meta::default(),
        }
    }
}

setters!(ElicitUrlParams {
    optional {
        elicitation_id: String,
        task: TaskMetadata,
    }
    plain { meta: Meta }
});

/// The result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitResult {
    /// The action of the user.
    pub action: ElicitAction,
    /// The values of an accepted form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitResult {
    /// Accepts a form with these values.
    pub fn accept(content: JsonObject) -> Self {
        Self {
            content: Some(content),
            ..Self::new(ElicitAction::Accept)
        }
    }

    /// Creates a result without content.
    pub fn new(action: ElicitAction) -> Self {
        Self {
            action,
            content: None,
            meta: Meta::default(),
        }
    }
}

setters!(ElicitResult {
    optional { content: JsonObject }
    plain { meta: Meta }
});

/// The action of a user on an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user submitted the form, or agreed to open the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the request.
    Cancel,
}

/// Parameters of `notifications/elicitation/complete` (2025-11-25 only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The id of the completed elicitation.
    pub elicitation_id: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitationCompleteParams {
    /// Reports a completed elicitation.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self {
            elicitation_id: elicitation_id.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ElicitationCompleteParams { plain { meta: Meta } });
