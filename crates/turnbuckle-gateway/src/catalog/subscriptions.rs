//! Subscriptions of clients to resources and lists, and their log levels.

use std::sync::Arc;

use tokio::task::JoinSet;
use turnbuckle_protocol::{RpcError, types::SubscriptionFilter};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    catalog::server_states::RESOURCE_URI,
    convert::ListKind,
    errors,
    gateway::{GatewayState, SERVER_TIMEOUT},
    hops::Hops,
    upstream::{
        UpstreamServer,
        interest::{Interest, ListenerGuard, Subscriber},
        log_levels::LogUser,
    },
};

impl GatewayState {
    /// Subscribes to a resource, or unsubscribes. The session of the client is already updated.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let hops = Hops::of_request(&params, &self.id)?;
        let missing = || RpcError::invalid_params("`uri` is missing");
        let uri = params.string("uri")?.ok_or_else(missing)?;
        if self.is_states_resource(request) {
            return self.own_result("{}", request);
        }
        let resolved = self.resolve(ListKind::Resources, &uri, request).await?;
        let server = &resolved.server;
        if !server.keeps_connections() {
            return Err(not_granted(server));
        }
        let connection = self.pool.get(server, request, None).await?;
        let Some(interest) = connection.interest() else {
            return Err(errors::closing(server.name()));
        };
        let subscriber = Subscriber::Session(request.session());
        let uris = [resolved.original];
        let changed = if request.method() == "resources/subscribe" {
            let granted = interest.subscribe(&connection, &uris, subscriber, &hops);
            match granted.await {
                Ok(granted) if granted.is_empty() => Err(not_granted(server)),
                Ok(_) => Ok(()),
                Err(error) => Err(errors::call_failure(server.name(), error)),
            }
        } else {
            let ended = interest.unsubscribe(&uris, subscriber).await;
            ended.map_err(|error| errors::call_failure(server.name(), error))
        };
        changed?;
        Ok("{}".to_owned())
    }

    /// Sets the log level of all servers that have one. The session of the client is already updated.
    pub(crate) async fn set_log_level(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let hops = Hops::of_request(&params, &self.id)?;
        let level = params.string("level")?.and_then(|level| level.parse().ok());
        let level = level.ok_or_else(|| RpcError::invalid_params("`level` is not a log level"))?;
        let user = LogUser::Session(request.session());
        let servers = self.servers();
        for server in servers.iter().filter(|server| server.keeps_connections()) {
            let Ok(connection) = self.pool.get(server, request, None).await else {
                continue;
            };
            if connection.client.server().capabilities.logging.is_some()
                && let Err(error) = connection.set_log_level(user, level, &hops).await
            {
                tracing::debug!(server = server.name(), %error, "the log level was not set");
            }
        }
        Ok("{}".to_owned())
    }

    /// Opens the connections that announce what a client listens to. What is not granted is removed from the filter.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        request: &RelayedRequest,
        filter: &mut SubscriptionFilter,
    ) -> Listener {
        let mut listener = Listener {
            subscriber: Subscriber::new_listener(),
            kept: Vec::new(),
            resources: Vec::new(),
        };
        let params = request.parsed_params();
        let hops = Hops::of_request(&params, &self.id);
        let Ok(hops) = hops else {
            filter.resource_subscriptions = None;
            return listener;
        };
        let mut opening = JoinSet::new();
        let servers = self.servers();
        for server in servers.iter().filter(|server| server.keeps_connections()) {
            let (state, server, request) = (Arc::clone(self), Arc::clone(server), request.clone());
            opening.spawn(async move {
                let opened = state.pool.get(&server, &request, None);
                tokio::time::timeout(SERVER_TIMEOUT, opened)
                    .await
                    .ok()?
                    .ok()
            });
        }
        let opened = opening.join_all().await;
        let connections: Vec<_> = opened.into_iter().flatten().collect();
        let interests = connections
            .iter()
            .filter_map(|connection| connection.interest());
        listener.kept = interests.map(Interest::add_listener).collect();
        let asked = filter.resource_subscriptions.take().unwrap_or_default();
        let (mut granted, of_servers) = self.uris_by_server(asked, request).await;
        for ServerUris { server, uris } in of_servers {
            let mut connections = connections.iter();
            let Some((connection, interest)) = connections
                .find(|open| Arc::ptr_eq(&open.server, &server))
                .and_then(|open| Some((open, Arc::clone(open.interest()?))))
            else {
                continue;
            };
            let originals: Vec<_> = uris.iter().map(|(_, original)| original.clone()).collect();
            let subscriber = listener.subscriber;
            let subscribed = interest.subscribe(connection, &originals, subscriber, &hops);
            match subscribed.await {
                Ok(of_server) => {
                    let uris = uris
                        .into_iter()
                        .filter(|(_, original)| of_server.contains(original));
                    granted.extend(uris.map(|(uri, _)| uri));
                    listener.resources.push((interest, of_server));
                }
                Err(error) => {
                    tracing::debug!(server = server.name(), %error, "resources were not subscribed to");
                }
            }
        }
        filter.resource_subscriptions = (!granted.is_empty()).then_some(granted);
        listener
    }

    /// Returns the URIs that the gateway itself can announce, and the others by their servers. Unknown ones are left out.
    async fn uris_by_server(
        self: &Arc<Self>,
        asked: Vec<String>,
        request: &RelayedRequest,
    ) -> (Vec<String>, Vec<ServerUris>) {
        let (mut own, mut of_servers) = (Vec::new(), Vec::<ServerUris>::new());
        for uri in asked {
            if uri == RESOURCE_URI && self.servers().len() > 1 {
                own.push(uri);
                continue;
            }
            let Ok(resolved) = self.resolve(ListKind::Resources, &uri, request).await else {
                continue;
            };
            let is_same = |of: &&mut ServerUris| Arc::ptr_eq(&of.server, &resolved.server);
            match of_servers.iter_mut().find(is_same) {
                Some(of_server) => of_server.uris.push((uri, resolved.original)),
                None => of_servers.push(ServerUris {
                    server: resolved.server,
                    uris: vec![(uri, resolved.original)],
                }),
            }
        }
        (own, of_servers)
    }
}

fn not_granted(server: &UpstreamServer) -> RpcError {
    let server = server.name();
    RpcError::internal(format!("server `{server}` did not grant the subscription"))
}

/// URIs of a server, as clients know them and as the server does.
struct ServerUris {
    server: Arc<UpstreamServer>,
    uris: Vec<(String, String)>,
}

/// The subscriptions of a client that listens for changes.
pub(crate) struct Listener {
    subscriber: Subscriber,
    kept: Vec<ListenerGuard>,
    resources: Vec<(Arc<Interest>, Vec<String>)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (resources, subscriber) = (std::mem::take(&mut self.resources), self.subscriber);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            for (interest, uris) in resources {
                let _ = interest.unsubscribe(&uris, subscriber).await;
            }
        });
    }
}
