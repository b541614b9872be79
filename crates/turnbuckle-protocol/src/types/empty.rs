//! Payloads that carry nothing but `_meta`.

use serde::{Deserialize, Serialize};

use super::setters::setters;
use crate::meta::Meta;

/// Parameters of a method that has none of its own.
///
/// `ping`, `server/discover`, `roots/list`, `notifications/initialized` and the `list_changed`
/// notifications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyParams {
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters!(EmptyParams { plain { meta: Meta } });

/// The result of a request that only had to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters!(EmptyResult { plain { meta: Meta } });
