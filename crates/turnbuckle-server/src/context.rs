//! The context of a handler: its request, and the messages it may send.

use std::{any::Any, sync::Arc};

use serde::Serialize;
use tracing::Instrument as _;
use turnbuckle_protocol::{
    Principal, RequestId, jsonrpc,
    meta::TraceContext,
    types::{ClientCapabilities, Implementation, LogLevel, LoggingMessageParams, ProgressParams},
};
use turnbuckle_store::ServerChange;

use crate::{Server, request::RequestContext, tasks};

/// Gives a handler access to its request and lets it send messages to the client.
///
/// Cheap to clone. It hides the revision: progress, log messages and client requests are sent in the form that the
/// client supports, or not at all.
#[derive(Clone)]
pub struct Context {
    pub(crate) call: Arc<RequestContext>,
}

impl Context {
    /// Reports progress to the client, if it requested progress: `progress` of `total`.
    ///
    /// A value that does not exceed the previous one is not sent. Waits while the client is slow to read.
    pub async fn progress(&self, progress: impl Into<f64>, total: impl Into<f64>) {
        self.report(progress.into(), Some(total.into()), None).await;
    }

    /// Like [`progress`](Self::progress), with a message for the user. The total may be unknown.
    pub async fn progress_message(
        &self,
        progress: impl Into<f64>,
        total: Option<f64>,
        message: impl Into<String>,
    ) {
        self.report(progress.into(), total, Some(message.into()))
            .await;
    }

    async fn report(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let call = &self.call;
        call.count_progress();
        if call.is_replaying() {
            return;
        }
        if let (Some(task), Some(message)) = (call.task(), &message) {
            tasks::set_status_message(&call.server, task, message).await;
        }
        let Some(token) = &call.origin.progress_token else {
            return;
        };
        let mut params = ProgressParams::new(token.clone(), progress);
        params.total = total;
        params.message = message;
        call.set_related_task(&mut params.meta);
        call.origin.rules.lower(&mut params);
        call.send_if_progressed(progress, || self.push("notifications/progress", &params));
        call.wait_for_room().await;
    }

    /// Sends a log message to the client, if the client accepts messages of this level.
    pub async fn log(&self, level: LogLevel, data: impl Serialize) {
        self.log_as(level, None, data).await;
    }

    /// Like [`log`](Self::log), with the name of a logger.
    pub async fn log_as(&self, level: LogLevel, logger: Option<&str>, data: impl Serialize) {
        let call = &self.call;
        if call
            .origin
            .log_level
            .is_none_or(|requested| level < requested)
            || call.is_replaying()
        {
            return;
        }
        let Ok(data) = serde_json::to_value(data) else {
            return;
        };
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger.map(str::to_owned);
        call.set_related_task(&mut params.meta);
        call.origin.rules.lower(&mut params);
        self.push("notifications/message", &params);
        call.wait_for_room().await;
    }

    fn push(&self, method: &str, params: &impl Serialize) {
        let mut message = Vec::with_capacity(192);
        if jsonrpc::write_notification(&mut message, method, params).is_ok() {
            self.call.send(message.into());
        }
    }

    /// The client's name and version, as reported by the client.
    pub fn client(&self) -> Option<&Implementation> {
        self.call.origin.client.info.as_ref()
    }

    /// The client's capabilities.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.call.origin.client.capabilities
    }

    /// The authenticated caller, if the transport knows it.
    pub fn principal(&self) -> Option<&Principal> {
        self.call.origin.principal.as_deref()
    }

    /// The W3C Trace Context of the request, if the client sent one.
    ///
    /// Requests that the server sends to the client on behalf of this request carry the same context.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.call.origin.trace.as_deref()
    }

    /// The id of the request, for logs.
    pub fn request_id(&self) -> &RequestId {
        &self.call.id
    }

    /// Returns a value that the transport or a layer attached to the request: HTTP headers (`http::HeaderMap`), the
    /// [query of the URL](crate::http::UrlQuery), the peer's address (`std::net::SocketAddr`), or your own types. On stdio only values attached by your program exist.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        let caller = &self.call.origin;
        caller
            .extensions
            .get::<T>()
            .or_else(|| downcast(caller.headers.as_deref()?))
            .or_else(|| downcast(caller.peer.as_ref()?))
    }

    /// Closes the HTTP connection that waits for this call, while the call continues.
    ///
    /// The client reconnects later to get the messages it missed, so a long call does not keep a connection open. Has
    /// an effect only in sessions with a revision that supports this.
    pub fn close_stream(&self) {
        self.call.outbox.close_stream();
    }

    /// Notifies subscribed clients that a resource was updated.
    pub fn resource_updated(&self, uri: impl Into<Arc<str>>) {
        self.publish(ServerChange::ResourceUpdated { uri: uri.into() });
    }

    /// Notifies clients that the list of tools changed.
    pub fn tools_changed(&self) {
        self.publish(ServerChange::ToolsChanged);
    }

    /// Notifies clients that the list of prompts changed.
    pub fn prompts_changed(&self) {
        self.publish(ServerChange::PromptsChanged);
    }

    /// Notifies clients that the list of resources changed.
    pub fn resources_changed(&self) {
        self.publish(ServerChange::ResourcesChanged);
    }

    fn publish(&self, change: ServerChange) {
        if !self.call.is_replaying() {
            self.call.server.publish(change);
        }
    }

    /// Runs a future to completion even if the call is cancelled, which drops the handler.
    ///
    /// Returns the future's output, or `None` if it panicked.
    pub async fn detach<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        tokio::spawn(future.in_current_span()).await.ok()
    }

    /// The server that runs this handler.
    pub fn server(&self) -> &Server {
        &self.call.server
    }
}

/// Returns the value as a `T`, if that is its type.
fn downcast<T: 'static>(value: &dyn Any) -> Option<&T> {
    value.downcast_ref()
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("request_id", &self.call.id)
            .finish_non_exhaustive()
    }
}
