//! Hints about content: for whom, how important, how old.

use serde::{Deserialize, Serialize};

use super::{number, setters::setters};

/// Who speaks, or who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, or the program acting for them.
    User,
    /// The model.
    Assistant,
}

/// Hints that a client may use when it shows or selects content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom the content is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// How important it is, from 0 (optional) to 1 (required).
    #[serde(
        default,
        serialize_with = "number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub priority: Option<f64>,
    /// When it was last changed, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Creates annotations that say nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(Annotations {
    optional {
        audience: Vec<Role>,
        priority: f64,
        last_modified: String,
    }
});
