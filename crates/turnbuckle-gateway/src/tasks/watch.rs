//! Task notifications for clients that listen, from modern servers.

use std::sync::Arc;

use tokio::task::JoinSet;
use turnbuckle_client::{Change, Subscription, SubscriptionEvent};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::RawObject,
    meta::keys,
    types::{SubscriptionFilter, tasks::GetTaskResult},
};
use turnbuckle_server::relay::{RelayedRequest, WatchedTasks};

use crate::{
    gateway::GatewayState,
    lifecycle::TaskDesign,
    raw_json::{edit, quote},
    tasks::{declares_tasks, ids, server_design},
    upstream::{
        UpstreamServer,
        interest::{Interest, ListenerGuard},
    },
};

impl GatewayState {
    /// Subscribes to the upstream tasks among these ids.
    pub(crate) async fn watch_tasks(
        self: &Arc<Self>,
        request: RelayedRequest,
        ids: Vec<String>,
    ) -> Option<WatchedTasks> {
        let servers = self.servers();
        let mut by_server = vec![Vec::new(); servers.len()];
        for id in ids {
            if let Some((server, upstream)) = self.find_task(&request, &id)
                && let Some(at) = servers.iter().position(|known| known.id == server.id)
                && !by_server[at].contains(&upstream)
            {
                by_server[at].push(upstream);
            }
        }
        let (mut granted, mut watchers) = (Vec::new(), Vec::new());
        for (server, tasks) in servers.iter().zip(by_server) {
            if tasks.is_empty() || !declares_tasks(&request) {
                continue;
            }
            match self.watch_server(&request, server, tasks).await {
                Ok((watcher, ids)) => {
                    granted.extend(ids.iter().map(|id| ids::seal(&request, server, id)));
                    watchers.push(watcher);
                }
                Err(error) => {
                    tracing::debug!(server = server.name(), error = %error.message, "tasks are not watched");
                }
            }
        }
        let notifications = async move {
            let mut running: JoinSet<()> = watchers.into_iter().map(TaskWatcher::run).collect();
            while running.join_next().await.is_some() {}
        };
        (!granted.is_empty()).then(|| WatchedTasks {
            ids: granted,
            notifications: Box::pin(notifications),
        })
    }

    /// Subscribes to tasks of one server, and returns those that it granted.
    async fn watch_server(
        self: &Arc<Self>,
        request: &RelayedRequest,
        server: &Arc<UpstreamServer>,
        tasks: Vec<String>,
    ) -> Result<(TaskWatcher, Vec<String>), RpcError> {
        let connection = self.pool.get(server, request, None).await?;
        if server_design(&connection.client.server()) != Some(TaskDesign::ServerDirected) {
            return Err(RpcError::internal("the server announces no tasks"));
        }
        let mut filter = SubscriptionFilter::default();
        filter.task_ids = Some(tasks);
        let subscribed = connection.client.listen(filter).await;
        let mut subscription =
            subscribed.map_err(|error| crate::errors::call_failure(server.name(), error))?;
        let granted = match subscription.next().await {
            Some(Ok(SubscriptionEvent::Acknowledged(granted))) => granted.task_ids,
            _ => None,
        };
        let watcher = TaskWatcher {
            request: request.clone(),
            server: Arc::clone(server),
            subscription,
            _kept: connection.interest().map(Interest::add_listener),
        };
        Ok((watcher, granted.unwrap_or_default()))
    }
}

/// Passes the task notifications of one server on.
struct TaskWatcher {
    request: RelayedRequest,
    server: Arc<UpstreamServer>,
    subscription: Subscription,
    _kept: Option<ListenerGuard>,
}

impl TaskWatcher {
    async fn run(mut self) {
        while let Some(Ok(event)) = self.subscription.next().await {
            let SubscriptionEvent::Change(Change::Task(task)) = event else {
                continue;
            };
            match self.notification(&task) {
                Ok(params) => self.request.notify("notifications/tasks", &params),
                Err(error) => {
                    tracing::debug!(error = %error.message, "an invalid task notification is dropped");
                }
            }
            self.request.wait_for_room().await;
        }
    }

    fn notification(&self, task: &GetTaskResult) -> Result<String, RpcError> {
        let id = ids::seal(&self.request, &self.server, &task.task.task_id);
        let params =
            serde_json::to_string(task).map_err(|error| RpcError::internal(error.to_string()))?;
        let meta = RawObject::parse(&params)?
            .get("_meta")
            .unwrap_or("{}")
            .to_owned();
        let subscription = self.request.id().raw().into_owned();
        let meta = edit(&meta, &[], &[(keys::SUBSCRIPTION_ID, subscription)])?;
        edit(&params, &[], &[("taskId", quote(&id)), ("_meta", meta)])
    }
}
