//! Further servers on paths below that of an endpoint, which are added and removed while it runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use ::http::request::Parts;
use turnbuckle_text::percent;

use crate::{
    http::{Http, endpoint::Endpoint},
    sync::lock,
};

/// The servers on paths below that of an [`Http`] server: `/mcp/NAME`. Clones share them.
///
/// Each has its own options, such as its authenticator and hosts, and its own sessions. The listener, its limits and the
/// shares of callers are those of the server above. Paths of [HTTP+SSE](Http::http_sse) and documents of the
/// authenticator above take precedence.
///
/// ```
/// use turnbuckle_server::{Server, http::{Http, PathServers}};
///
/// let servers = PathServers::default();
/// let http = Http::new(Server::new("all", "1.0.0")).path_servers(&servers);
/// // At any time: `/mcp/clock`.
/// servers.insert("clock", Http::new(Server::new("clock", "1.0.0")));
/// servers.remove("clock");
/// ```
#[derive(Clone, Default)]
pub struct PathServers(Arc<Mutex<HashMap<String, Arc<PathServer>>>>);

struct PathServer {
    http: Http,
    /// Created for the first request, when the endpoint above is known.
    endpoint: OnceLock<Arc<Endpoint>>,
}

impl PathServers {
    /// Adds a server, or replaces the one with the same name.
    pub fn insert(&self, name: impl Into<String>, http: Http) {
        let server = Arc::new(PathServer {
            http,
            endpoint: OnceLock::new(),
        });
        let replaced = lock(&self.0).insert(name.into(), server);
        if let Some(replaced) = replaced {
            replaced.close();
        }
    }

    /// Removes a server, and returns whether it existed. Its streams end, and running requests finish.
    pub fn remove(&self, name: &str) -> bool {
        let removed = lock(&self.0).remove(name);
        if let Some(removed) = &removed {
            removed.close();
        }
        removed.is_some()
    }

    /// Returns the endpoint that a request below another one is for.
    pub(super) fn find(&self, above: &Endpoint, parts: &Parts) -> Option<Arc<Endpoint>> {
        let path = parts.uri.path();
        let server = if path.starts_with("/.well-known/") {
            let servers: Vec<_> = lock(&self.0).values().cloned().collect();
            let mut servers = servers.into_iter();
            servers.find(|server| server.http.has_document(path))
        } else {
            let name = path.strip_prefix(&*above.options.path)?.strip_prefix('/')?;
            let name = name.strip_suffix('/').unwrap_or(name);
            let name = String::from_utf8(percent::decode_strict(name)?).ok()?;
            lock(&self.0).get(&name).cloned()
        };
        let server = server?;
        let endpoint = server.endpoint.get_or_init(|| server.http.below(above));
        Some(Arc::clone(endpoint))
    }

    /// Returns the endpoints that have had requests.
    pub(super) fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        let servers = lock(&self.0);
        let endpoints = servers.values().filter_map(|server| server.endpoint.get());
        endpoints.cloned().collect()
    }
}

impl std::fmt::Debug for PathServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(lock(&self.0).keys()).finish()
    }
}

impl PathServer {
    fn close(&self) {
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.close();
        }
    }
}

impl Http {
    /// Also serves other servers on the paths below that of the endpoint, such as `/mcp/NAME`. A mounted
    /// [service](Self::into_service) does not serve them.
    #[must_use]
    pub fn path_servers(mut self, servers: &PathServers) -> Self {
        self.options.path_servers = Some(servers.clone());
        self
    }

    fn has_document(&self, path: &str) -> bool {
        let authenticator = self.options.authenticator.as_ref();
        authenticator.is_some_and(|authenticator| authenticator.has_document(path))
    }

    /// Returns an endpoint on a path below that of another one, which selects the path.
    fn below(&self, above: &Endpoint) -> Arc<Endpoint> {
        let mut options = self.options.clone();
        options.is_mounted = true;
        options.http_sse = None;
        options.path_servers = None;
        let endpoint = Arc::new(Endpoint::below(above, self.server.clone(), options));
        endpoint.register_with(self.server.session_users());
        if above.is_closed() {
            endpoint.close();
        }
        endpoint
    }
}
