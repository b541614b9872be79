//! Elicitation: a server asks the client's user, by a form or by sending them to a URL.

mod fields;
mod schema;
mod select;

pub use fields::{BooleanSchema, NumberKind, NumberSchema, StringFormat, StringSchema};
pub use schema::{ElicitSchema, PrimitiveSchema};
pub use select::{EnumOption, MultiSelectSchema, SingleSelectSchema};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::{JsonObject, setters::setters, tasks::legacy::TaskMetadata};
use crate::{json, meta::Meta};

/// Parameters of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Show a form. Written without `mode`, which every revision reads as a form.
    Form(ElicitFormParams),
    /// Open a URL (since 2025-11-25).
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// Returns what the user is told.
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

/// A form to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// What the user is told.
    pub message: String,
    /// What the form asks for.
    pub requested_schema: ElicitSchema,
    /// Asks for a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitFormParams {
    /// Asks the user to fill in a form.
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

/// A URL to visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    mode: UrlMode,
    /// What the user is told.
    pub message: String,
    /// Where to go.
    pub url: String,
    /// Names the visit (required in 2025-11-25, gone since).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks for a task (2025-11-25 only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

/// The one value that `mode` has here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum UrlMode {
    #[serde(rename = "url")]
    Url,
}

impl ElicitUrlParams {
    /// Asks the user to visit a URL.
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
    /// What the user did.
    pub action: ElicitAction,
    /// What was filled in, when a form was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitResult {
    /// Accepts with what was filled in.
    pub fn accept(content: JsonObject) -> Self {
        Self {
            content: Some(content),
            ..Self::new(ElicitAction::Accept)
        }
    }

    /// Creates an answer without content.
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

/// What a user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Agreed: sent the form, or agreed to visit the URL.
    Accept,
    /// Said no.
    Decline,
    /// Dismissed it without a choice.
    Cancel,
}

/// Parameters of `notifications/elicitation/complete` (2025-11-25 only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The visit that is over.
    pub elicitation_id: String,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ElicitationCompleteParams {
    /// Says that a visit is over.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self {
            elicitation_id: elicitation_id.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ElicitationCompleteParams { plain { meta: Meta } });
