//! Subscriptions of clients to resources and lists, and their log levels.

use std::sync::Arc;

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject, types::SubscriptionFilter};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    convert::ListKind,
    errors,
    gateway::GatewayState,
    upstream::{connection::Connection, interest::ListenerGuard},
};

impl GatewayState {
    /// Subscribes to a resource, or unsubscribes. The session of the client is already updated.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params("`uri` is missing");
        let uri = params.string("uri")?.ok_or_else(missing)?;
        let resolved = self.resolve(ListKind::Resources, &uri, request).await?;
        let server = self.server(resolved.server)?;
        let connection = self.pool.get(&server, request, None).await?;
        let subscriber = format!("{:?}", request.session());
        let changed = if request.method() == "resources/subscribe" {
            connection.subscribe(&resolved.original, &subscriber).await
        } else {
            connection
                .unsubscribe(&resolved.original, &subscriber)
                .await
        };
        changed.map_err(|error| errors::call_failure(server.name(), error))?;
        Ok("{}".to_owned())
    }

    /// Sets the log level of all servers that have one. The session of the client is already updated.
    pub(crate) async fn set_log_level(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        let level = params.string("level")?.and_then(|level| level.parse().ok());
        let level = level.ok_or_else(|| RpcError::invalid_params("`level` is not a log level"))?;
        for server in self.servers().iter() {
            let Ok(connection) = self.pool.get(server, request, None).await else {
                continue;
            };
            if connection.client.server().capabilities.logging.is_some()
                && let Err(error) = connection.set_log_level(level).await
            {
                tracing::debug!(server = server.name(), %error, "the log level was not set");
            }
        }
        Ok("{}".to_owned())
    }

    /// Opens the connections that announce what a client listens to.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        request: &RelayedRequest,
        filter: &SubscriptionFilter,
    ) -> Listener {
        let mut listener = Listener::default();
        let mut id = [0; 8];
        let _ = getrandom::fill(&mut id);
        listener.subscriber = format!("{id:?}");
        for server in self.servers().iter() {
            if let Ok(connection) = self.pool.get(server, request, None).await {
                listener.kept.extend(connection.keep_for_listener());
            }
        }
        for uri in filter.resource_subscriptions.iter().flatten() {
            let Ok(resolved) = self.resolve(ListKind::Resources, uri, request).await else {
                continue;
            };
            let Ok(server) = self.server(resolved.server) else {
                continue;
            };
            let Ok(connection) = self.pool.get(&server, request, None).await else {
                continue;
            };
            let subscribed = connection
                .subscribe(&resolved.original, &listener.subscriber)
                .await;
            match subscribed {
                Ok(()) => listener.resources.push((connection, resolved.original)),
                Err(error) => {
                    tracing::debug!(server = server.name(), %error, "a resource was not subscribed to");
                }
            }
        }
        listener
    }
}

/// The upstream connections and subscriptions of a client that listens for changes.
#[derive(Default)]
pub(crate) struct Listener {
    subscriber: String,
    kept: Vec<ListenerGuard>,
    resources: Vec<(Arc<Connection>, String)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (resources, subscriber) =
            (std::mem::take(&mut self.resources), self.subscriber.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            for (connection, uri) in resources {
                let _ = connection.unsubscribe(&uri, &subscriber).await;
            }
        });
    }
}
