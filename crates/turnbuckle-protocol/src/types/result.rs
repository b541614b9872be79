//! What all results share: their kind, and for how long they may be kept.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{self, ReadError};

/// What kind of result an object is (`resultType`, since 2026-07-28).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultType {
    /// The request is done. Also the meaning of a missing `resultType`.
    #[default]
    Complete,
    /// The server needs answers first; see [`InputRequiredResult`](super::InputRequiredResult).
    InputRequired,
    /// The request became a task (tasks extension).
    Task,
    /// A kind this library does not know; the result is not usable.
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

    /// Returns the kind of a name on the wire.
    pub(crate) fn named(name: Cow<'_, str>) -> Self {
        match &*name {
            "complete" => Self::Complete,
            "input_required" => Self::InputRequired,
            "task" => Self::Task,
            _ => Self::Unknown(name.into_owned()),
        }
    }

    /// Reads the kind of a raw result without building it.
    pub fn of(result: &str) -> Result<Self, ReadError> {
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

/// Who may share a stored answer (`cacheScope`, since 2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Everyone gets the same answer.
    Public,
    /// The answer belongs to one authorization context.
    Private,
}
