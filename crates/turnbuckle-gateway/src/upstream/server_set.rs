//! The upstream servers that a gateway has now. A reload replaces the set; running requests keep the one they have read.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::upstream::UpstreamServer;

/// Identifies an upstream server as long as the process runs. A changed server gets a new id.
pub(crate) type ServerId = usize;

/// Returns an id that no other server has.
pub(crate) fn next_id() -> ServerId {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The upstream servers, in the order of the configuration.
#[derive(Default)]
pub(crate) struct ServerSet {
    servers: Vec<Arc<UpstreamServer>>,
    by_name: HashMap<Arc<str>, usize>,
    /// Whether names of tools and prompts begin with the name of their server.
    pub(crate) has_prefix: bool,
}

impl ServerSet {
    pub(crate) fn new(servers: Vec<Arc<UpstreamServer>>, has_prefix: bool) -> Self {
        let names = servers
            .iter()
            .map(|server| Arc::clone(&server.settings.name));
        Self {
            by_name: names.zip(0..).collect(),
            servers,
            has_prefix,
        }
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<UpstreamServer>> {
        self.servers.get(*self.by_name.get(name)?)
    }

    /// Returns the only server, if there is one.
    pub(crate) fn only(&self) -> Option<&Arc<UpstreamServer>> {
        match &*self.servers {
            [server] => Some(server),
            _ => None,
        }
    }
}

impl Deref for ServerSet {
    type Target = [Arc<UpstreamServer>];

    fn deref(&self) -> &Self::Target {
        &self.servers
    }
}
