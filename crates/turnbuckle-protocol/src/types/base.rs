//! Parameters and result members that many methods share.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{json, json::JsonError, meta::Meta};

/// Parameters of methods without any of their own.
///
/// `ping`, `server/discover`, `roots/list`, `notifications/initialized` and the `list_changed`
/// notifications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters!(EmptyParams { plain { meta: Meta } });

/// The result of requests without data to return.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters!(EmptyResult { plain { meta: Meta } });

/// The position of the next page; opaque to all but the server that created it.
///
/// The empty string is a valid cursor.
pub type Cursor = String;

/// Parameters of every list request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaginatedParams {
    /// The cursor of the page; absent for the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl PaginatedParams {
    /// Requests the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(PaginatedParams {
    optional { cursor: Cursor }
    plain { meta: Meta }
});

/// The kind of a result (`resultType`, since 2026-07-28).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultType {
    /// The request is complete. Also the meaning of an absent `resultType`.
    #[default]
    Complete,
    /// The server needs input first; see [`InputRequiredResult`](super::InputRequiredResult).
    InputRequired,
    /// The request became a task (tasks extension).
    Task,
    /// An unknown kind; the result cannot be used.
    Unknown(String),
}

impl ResultType {
    /// Returns the name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Unknown(name) => name,
        }
    }

    /// Returns the kind with this name on the wire.
    pub(crate) fn named(name: Cow<'_, str>) -> Self {
        match &*name {
            "complete" => Self::Complete,
            "input_required" => Self::InputRequired,
            "task" => Self::Task,
            _ => Self::Unknown(name.into_owned()),
        }
    }

    /// Reads the kind of a raw result without deserializing the rest.
    pub fn from_result_json(result: &str) -> Result<Self, JsonError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "resultType", default)]
            result_type: ResultType,
        }
        Ok(json::from_str::<Head>(result)?.result_type)
    }
}

impl Serialize for ResultType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::named(Cow::deserialize(deserializer)?))
    }
}

/// The scope of a cached result (`cacheScope`, since 2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// The result is the same for all callers.
    Public,
    /// The result is valid for one authorization context only.
    Private,
}
