//! Roots: the folders a client lets a server look at.

use serde::{Deserialize, Serialize};

use super::setters::setters;
use crate::meta::Meta;

/// The result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListRootsResult {
    /// Lists roots.
    pub fn new(roots: impl Into<Vec<Root>>) -> Self {
        Self {
            roots: roots.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ListRootsResult { plain { meta: Meta } });

/// A place that a client lets a server look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Root {
    /// Its address, a `file:` URI.
    pub uri: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Root {
    /// Names a root by its address.
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
