//! The metadata documents that the server publishes.

use std::sync::Arc;

use turnbuckle_protocol::authenticator::{BoxFuture, MetadataDocument};
use turnbuckle_text::url::HttpUrl;

use super::{
    DpopPolicy, ResourceServer,
    cached_document::{CachedDocument, fetch_issuer_metadata},
    rejection::without_offline_access,
};
use crate::{ProtectedResource, well_known};

const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
const SERVER_METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

/// Settings of the published metadata.
pub(super) struct MetadataSettings {
    pub(super) name: Option<String>,
    pub(super) documentation: Option<String>,
    /// Publish the metadata of the issuer too.
    pub(super) republish: bool,
    issuer: Arc<CachedDocument<Vec<u8>>>,
}

impl Default for MetadataSettings {
    fn default() -> Self {
        Self {
            name: None,
            documentation: None,
            republish: false,
            issuer: CachedDocument::new(),
        }
    }
}

impl ResourceServer {
    /// Returns the URL of the resource metadata; `None` if only static tokens are accepted.
    pub(super) fn metadata_url(&self) -> Option<String> {
        if self.issuers.is_empty() {
            return None;
        }
        well_known::protected_resource(&self.resource)
            .into_iter()
            .next()
    }

    pub(super) fn metadata_document_at(
        &self,
        path: &str,
    ) -> Option<BoxFuture<'_, MetadataDocument>> {
        if path == SERVER_METADATA_PATH && self.metadata_settings.republish {
            let issuer = self.issuers.first()?.name();
            return Some(Box::pin(self.issuer_metadata(issuer)));
        }
        if self.issuers.is_empty() || !self.is_metadata_path(path) {
            return None;
        }
        let body =
            serde_json::to_vec(&self.metadata()).expect("strings and lists can be serialized");
        Some(Box::pin(async { MetadataDocument::new(200, body) }))
    }

    /// Returns whether clients look for the metadata at this path: below the well-known path, at the root, or below the
    /// endpoint.
    fn is_metadata_path(&self, path: &str) -> bool {
        let own = HttpUrl::parse(&self.resource).map_or("", |url| url.path);
        let own = own.trim_end_matches('/');
        let path = path.trim_end_matches('/');
        match path.strip_prefix(RESOURCE_METADATA_PATH) {
            Some(below) => below.is_empty() || below == own,
            None => path.strip_suffix(RESOURCE_METADATA_PATH) == Some(own),
        }
    }

    fn metadata(&self) -> ProtectedResource {
        let issuers = self.issuers.iter().map(super::TrustedIssuer::name);
        let mut metadata = ProtectedResource::new(&self.resource, issuers);
        let scopes = without_offline_access(&self.advertised_scopes.union(&self.required_scopes));
        metadata.scopes_supported = scopes.iter().map(str::to_owned).collect();
        metadata.resource_name = self.metadata_settings.name.clone();
        metadata.resource_documentation = self.metadata_settings.documentation.clone();
        metadata.dpop_bound_access_tokens_required = self.dpop == DpopPolicy::Require;
        metadata
    }

    async fn issuer_metadata(&self, issuer: &str) -> MetadataDocument {
        let load = || {
            let (fetch, issuer) = (Arc::clone(&self.fetch), issuer.to_owned());
            async move {
                let found = fetch_issuer_metadata(&*fetch, &issuer).await;
                let found = found.inspect_err(|reason| {
                    tracing::warn!(issuer, reason, "cannot fetch the metadata of the issuer");
                });
                found.ok().map(|(body, _)| body)
            }
        };
        match self
            .metadata_settings
            .issuer
            .get(&self.clock, |_| true, load)
            .await
        {
            Some(body) => MetadataDocument::new(200, &body[..]),
            None => MetadataDocument::new(503, &br#"{"error":"temporarily_unavailable"}"#[..]),
        }
    }
}
