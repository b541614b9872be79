//! How far a request has come.

use serde::{Deserialize, Serialize};

use super::{number, setters::setters};
use crate::{RequestId, meta::Meta};

/// Parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token that the request carried.
    pub progress_token: RequestId,
    /// How far it is; grows with every notification.
    #[serde(serialize_with = "number::plain")]
    pub progress: f64,
    /// Where it ends, if known.
    #[serde(
        default,
        serialize_with = "number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<f64>,
    /// What is being done (since 2025-03-26).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ProgressParams {
    /// Reports progress to whoever gave the token.
    pub fn new(progress_token: impl Into<RequestId>, progress: impl Into<f64>) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress: progress.into(),
            total: None,
            message: None,
            meta: Meta::default(),
        }
    }
}

setters!(ProgressParams {
    optional {
        total: f64,
        message: String,
    }
    plain { meta: Meta }
});
