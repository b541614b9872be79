//! Roots: the folders that a client exposes to a server.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// The result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListRootsResult {
    /// Creates a list of roots.
    pub fn new(roots: impl Into<Vec<Root>>) -> Self {
        Self {
            roots: roots.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ListRootsResult { plain { meta: Meta } });

/// A folder or file that a client exposes to a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Root {
    /// The `file:` URI.
    pub uri: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Root {
    /// Creates a root from its URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
            meta: Meta::default(),
        }
    }
}

setters!(Root {
    optional { name: String }
    plain { meta: Meta }
});
