//! What everybody may read: where tokens are to be had.

use std::sync::Arc;

use turnbuckle_protocol::guard::{BoxFuture, Document};

use super::{DpopPolicy, ResourceServer, discovery::discover, kept::Kept, refusal::named};
use crate::{ProtectedResource, place::Place, well_known};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";

/// What the metadata says for people, and what is passed on.
pub(super) struct Documents {
    pub(super) name: Option<String>,
    pub(super) documentation: Option<String>,
    /// Whether the metadata of the issuer is served here too.
    pub(super) republish: bool,
    issuer: Arc<Kept<Vec<u8>>>,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            name: None,
            documentation: None,
            republish: false,
            issuer: Kept::new(),
        }
    }
}

impl ResourceServer {
    /// Where the metadata of this server is; nowhere, if it takes only tokens that nobody issues.
    pub(super) fn metadata_url(&self) -> Option<String> {
        if self.issuers.is_empty() {
            return None;
        }
        well_known::protected_resource(&self.resource)
            .into_iter()
            .next()
    }

    pub(super) fn document_at(&self, path: &str) -> Option<BoxFuture<'_, Document>> {
        if path == SERVER && self.documents.republish {
            let issuer = self.issuers.first()?.name();
            return Some(Box::pin(self.metadata_of(issuer)));
        }
        if self.issuers.is_empty() || !self.is_metadata_path(path) {
            return None;
        }
        let body = serde_json::to_vec(&self.metadata()).expect("texts and lists are JSON");
        Some(Box::pin(async { Document::new(200, body) }))
    }

    /// Clients look behind the well-known path, at the root, and below the endpoint.
    fn is_metadata_path(&self, path: &str) -> bool {
        let own = Place::parse(&self.resource).map_or("", |place| place.path);
        let own = own.trim_end_matches('/');
        let path = path.trim_end_matches('/');
        match path.strip_prefix(RESOURCE) {
            Some(below) => below.is_empty() || below == own,
            None => path.strip_suffix(RESOURCE) == Some(own),
        }
    }

    fn metadata(&self) -> ProtectedResource {
        let issuers = self.issuers.iter().map(super::Issuer::name);
        let mut metadata = ProtectedResource::new(&self.resource, issuers);
        let scopes = named(&self.offered.union(&self.required));
        metadata.scopes_supported = scopes.iter().map(str::to_owned).collect();
        metadata.resource_name = self.documents.name.clone();
        metadata.resource_documentation = self.documents.documentation.clone();
        metadata.dpop_bound_access_tokens_required = self.dpop == DpopPolicy::Require;
        metadata
    }

    async fn metadata_of(&self, issuer: &str) -> Document {
        let load = || {
            let (fetch, issuer) = (Arc::clone(&self.fetch), issuer.to_owned());
            async move {
                let found = discover(&*fetch, &issuer).await;
                let found =
                    found.inspect_err(|reason| tracing::warn!(issuer, reason, "no metadata"));
                found.ok().map(|(body, _)| body)
            }
        };
        match self.documents.issuer.get(&self.clock, |_| true, load).await {
            Some(body) => Document::new(200, &body[..]),
            None => Document::new(503, &br#"{"error":"temporarily_unavailable"}"#[..]),
        }
    }
}
