//! What a server says about itself when asked (since 2026-07-28).

use serde::{Deserialize, Serialize};

use super::{CacheScope, ServerCapabilities, number::integer, setters::setters};
use crate::meta::Meta;

/// The result of `server/discover`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// Every revision the server speaks, also those with a handshake.
    pub supported_versions: Vec<String>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it; models may read this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl DiscoverResult {
    /// Describes a server.
    pub fn new(
        supported_versions: impl IntoIterator<Item = impl Into<String>>,
        capabilities: ServerCapabilities,
    ) -> Self {
        Self {
            supported_versions: supported_versions.into_iter().map(Into::into).collect(),
            capabilities,
            ..Self::default()
        }
    }
}

setters!(DiscoverResult {
    optional {
        instructions: String,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});
