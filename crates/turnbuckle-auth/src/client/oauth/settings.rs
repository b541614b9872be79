//! What a client was told before it began.

use std::sync::Arc;

use super::Grant;
use crate::{
    Failure, Scopes, Secret, Step,
    client::{
        interact::Interact,
        store::{Login, MemoryStore, Store},
    },
    fetch::Fetch,
    is_same_resource,
    place::Place,
};

/// When tokens are bound to a key, so that nobody else can use them (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dpop {
    /// If the server wants it.
    #[default]
    WhenWanted,
    /// Always; a token that is not bound is not used.
    Always,
    /// Never.
    Never,
}

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) server_url: String,
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<Secret>,
    pub(super) issuer: Option<String>,
    pub(super) metadata_document: Option<String>,
    pub(super) name: String,
    pub(super) scopes: Option<Scopes>,
    pub(super) store: Arc<dyn Store>,
    pub(super) interact: Option<Arc<dyn Interact>>,
    pub(super) grant: Grant,
    pub(super) dpop: Dpop,
    pub(super) protocol_version: String,
}

impl Settings {
    pub(super) fn new(server_url: String, fetch: Arc<dyn Fetch>) -> Settings {
        Settings {
            server_url,
            fetch,
            client_id: None,
            client_secret: None,
            issuer: None,
            metadata_document: None,
            name: "Turnbuckle".to_owned(),
            scopes: None,
            store: Arc::new(MemoryStore::new()),
            interact: None,
            grant: Grant::Code,
            dpop: Dpop::WhenWanted,
            protocol_version: "2026-07-28".to_owned(),
        }
    }

    /// Refuses to bring credentials for another origin than that of the server.
    pub(super) fn check_origin(&self, url: &str) -> Result<(), Failure> {
        if self.is_same_origin(url) {
            return Ok(());
        }
        let to = Place::parse(url).map_or("somewhere else", |place| place.origin);
        let reason = format!(
            "the token is for `{}`, and the request goes to `{to}`",
            self.server_url
        );
        Err(Failure::new(Step::Use, reason)
            .cure("connect to the other server by its own URL, with a login of its own"))
    }

    pub(super) fn is_same_origin(&self, url: &str) -> bool {
        match (Place::parse(&self.server_url), Place::parse(url)) {
            (Some(ours), Some(other)) => is_same_resource(ours.origin, other.origin),
            _ => false,
        }
    }

    /// Whether a login that was kept is one that these settings could have led to.
    pub(super) fn suit(&self, login: &Login) -> bool {
        let is_our_client = self
            .client_id
            .as_ref()
            .is_none_or(|id| *id == login.client.id);
        let is_our_issuer = self
            .issuer
            .as_ref()
            .is_none_or(|issuer| issuer == login.issuer());
        is_our_client && is_our_issuer
    }
}
