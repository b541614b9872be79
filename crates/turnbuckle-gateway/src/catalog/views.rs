//! Views: one upstream server as a server of its own, with its own names, in addition to the one in front of all servers.
//!
//! A view has the connections, policies, locks, limits and audit log of the gateway. Its sessions, names and lists are its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use turnbuckle_server::Server;

use crate::{
    gateway::{GatewayState, RunningGateway},
    lock,
    upstream::{UpstreamServer, server_set::ServerSet},
};

/// The views that were requested, by the name of their server.
#[derive(Default)]
pub(crate) struct ViewTable(Mutex<HashMap<String, Arc<GatewayState>>>);

impl RunningGateway {
    /// Returns the server in front of one upstream server alone, to be served in addition to [`server`](Self::server).
    /// `None` if no upstream server has this name.
    ///
    /// Names of tools and prompts are not prefixed. Connections, policies, tool locks, rate limits and the audit log are those
    /// of the gateway; sessions are separate. After a [reload](Self::reload), it is in front of the new server with
    /// the name. If that was removed, lists are empty, and a later server with the name needs another call of this function.
    pub fn server_of(&self, name: &str) -> Option<Server> {
        let state = self.state();
        // Under the lock, so that a reload that replaces the servers now replaces those of a new view too.
        let mut views = lock(&state.views.0);
        if let Some(view) = views.get(name) {
            return view.front();
        }
        let view = state.view_of(&state.server_named(name)?);
        let front = view.front();
        views.insert(name.to_owned(), view);
        front
    }
}

impl ViewTable {
    /// Returns the views of a server.
    pub(crate) fn of_server(&self, server: &UpstreamServer) -> Vec<Arc<GatewayState>> {
        let views = lock(&self.0);
        let shows_server = |view: &&Arc<GatewayState>| {
            let shown = view.only_server();
            shown.is_some_and(|shown| shown.id == server.id)
        };
        views.values().filter(shows_server).cloned().collect()
    }

    /// Returns all views.
    pub(crate) fn all(&self) -> Vec<Arc<GatewayState>> {
        lock(&self.0).values().cloned().collect()
    }

    /// Replaces the servers. Views of removed servers end.
    pub(crate) fn replace_servers(&self, servers: &ServerSet) {
        let mut views = lock(&self.0);
        views.retain(|name, view| {
            let Some(server) = servers.by_name(name) else {
                view.replace_servers(ServerSet::default());
                view.forget_front();
                return false;
            };
            let shown = view.only_server();
            if shown.is_none_or(|shown| shown.id != server.id) {
                view.replace_servers(view_servers(server));
            }
            true
        });
    }
}

/// Returns the servers of a view. Names are not prefixed.
pub(crate) fn view_servers(server: &Arc<UpstreamServer>) -> ServerSet {
    ServerSet::new(vec![Arc::clone(server)], false)
}
