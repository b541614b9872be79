//! Replaces the upstream servers of a running gateway. Servers that stay the same are not touched.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use crate::{
    gateway::{GatewayState, RunningGateway, SERVER_TIMEOUT, StartError},
    upstream::{
        Upstream, UpstreamServer,
        server_set::{ServerId, ServerSet},
    },
};

/// Maximum time that running calls of a removed server have.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// What a reload has changed: names of upstream servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// New servers.
    pub added: Vec<String>,
    /// Servers with other settings than before. They were connected again.
    pub changed: Vec<String>,
    /// Servers that are not used anymore.
    pub removed: Vec<String>,
}

impl Reload {
    /// Returns whether all servers are the same as before.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl RunningGateway {
    /// Replaces the upstream servers.
    ///
    /// A server with the same name and [fingerprint](Upstream::fingerprint) as before keeps its connections, child
    /// processes and sessions. Connections of the others are closed when their running calls have ended, at most 30
    /// seconds later. A new server that cannot be reached is tried again. If this returns an error, nothing has changed.
    pub async fn reload(
        &self,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Result<Reload, StartError> {
        let state = self.state();
        let _one_at_a_time = state.reloading.lock().await;
        let old = state.servers();
        let mut servers = Vec::new();
        let mut reload = Reload::default();
        let mut started = Vec::new();
        for server in UpstreamServer::all(upstreams, state.has_authenticated_callers)? {
            let name = server.name().to_owned();
            match old.by_name(&name) {
                Some(known) if known.settings.is_same(&server.settings) => {
                    servers.push(Arc::clone(known));
                    continue;
                }
                Some(_) => reload.changed.push(name),
                None => reload.added.push(name),
            }
            started.push(Arc::clone(&server));
            servers.push(server);
        }
        let is_kept = |id| servers.iter().any(|server| server.id == id);
        let retired: Vec<_> = old
            .iter()
            .filter(|server| !is_kept(server.id))
            .cloned()
            .collect();
        reload.removed = retired
            .iter()
            .map(|server| server.name().to_owned())
            .filter(|name| !reload.changed.contains(name))
            .collect();
        let ids = |servers: &[Arc<UpstreamServer>]| -> Vec<ServerId> {
            servers.iter().map(|server| server.id).collect()
        };
        if ids(&old) == ids(&servers) {
            return Ok(reload);
        }
        probe_new(state, started).await;
        let has_prefix = state.prefix.applies_to(servers.len());
        state.replace_servers(ServerSet::new(servers, has_prefix));
        for server in retired {
            let state = Arc::clone(state);
            tokio::spawn(async move { state.pool.retire(&server, DRAIN_TIMEOUT).await });
        }
        Ok(reload)
    }
}

/// Connects to new servers, so that they are up when clients first see them.
async fn probe_new(state: &Arc<GatewayState>, servers: Vec<Arc<UpstreamServer>>) {
    let mut probes = JoinSet::new();
    for server in servers {
        let state = Arc::clone(state);
        probes.spawn(async move {
            let began = Instant::now();
            let probe = state.pool.probe(&server);
            if tokio::time::timeout(SERVER_TIMEOUT, probe).await.is_err() {
                server.failed("timeout", began);
            }
        });
    }
    probes.join_all().await;
}
