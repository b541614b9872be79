//! Who is at the other end: name and version of a client or server program.

use serde::{Deserialize, Serialize};

use super::{Icon, setters::setters};

/// The name and version of a program that speaks the protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version of the program, in whatever scheme it uses.
    pub version: String,
    /// What the program is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures that stand for the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Where to read more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl Implementation {
    /// Names a program.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            ..Self::default()
        }
    }
}

setters!(Implementation {
    optional {
        title: String,
        description: String,
        website_url: String,
    }
    plain {
        icons: Vec<Icon>,
    }
});
