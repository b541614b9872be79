//! Lists that come in pages.

use serde::{Deserialize, Serialize};

use super::setters::setters;
use crate::meta::Meta;

/// Where the next page begins; opaque to everyone but the server that made it.
///
/// The empty string is a cursor like any other.
pub type Cursor = String;

/// Parameters of every list request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PaginatedParams {
    /// Where to continue; absent for the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl PaginatedParams {
    /// Asks for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(PaginatedParams {
    optional { cursor: Cursor }
    plain { meta: Meta }
});
