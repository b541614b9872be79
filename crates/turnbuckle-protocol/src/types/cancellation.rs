//! Giving up on a request.

use serde::{Deserialize, Serialize};

use super::setters::setters;
use crate::{RequestId, meta::Meta};

/// Parameters of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The request that is no longer wanted. 2025-11-25 lets it be absent; such a notification means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why, for logs and people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CancelledParams {
    /// Cancels a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self {
            request_id: Some(request_id.into()),
            ..Self::default()
        }
    }
}

setters!(CancelledParams {
    optional { reason: String }
    plain { meta: Meta }
});
