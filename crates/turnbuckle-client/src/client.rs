//! The client: one connection to one server.

mod connect;
pub(crate) mod list_page;
mod methods;
mod request;
mod retry;
pub(crate) mod timeout;

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use turnbuckle_protocol::{RequestId, types::LogLevel};

pub(crate) use crate::client::{
    request::{ReceivedResult, require_complete},
    retry::{is_lost_response, is_response_lost, needs_new_session},
};
use crate::{
    builder::ClientBuilder,
    error::TransportError,
    inbound::InboundRouter,
    lifecycle::{Negotiated, RevisionRules},
    sync::lock,
    tools::ToolCache,
    transport::{Transport, encode},
};

/// Maximum time that `close` waits for the cancellation of the tasks of dropped calls.
const TASK_CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection to a server.
///
/// Cheap to clone: all clones share the connection. It ends with [`close`](Self::close), or when the last clone is
/// dropped.
///
/// ```no_run
/// # async fn run(reader: tokio::io::Empty, writer: tokio::io::Sink) -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
///
/// let client = turnbuckle_client::ndjson::connect(reader, writer).await?;
/// let output = client.call_tool("forecast", json!({ "city": "Oslo" })).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<ClientInner>,
    /// Shared by clones only, not by background tasks.
    _close_on_drop: Arc<CloseOnDrop>,
}

/// Closes the connection with the last clone of a client, even if background tasks still hold the inner state.
struct CloseOnDrop(Arc<InboundRouter>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.client_dropped();
    }
}

/// The state that clones of a client share.
pub(crate) struct ClientInner {
    pub(crate) transport: Transport,
    pub(crate) router: Arc<InboundRouter>,
    pub(crate) ids: RequestIds,
    pub(crate) settings: ClientBuilder,
    /// The cache of listed tools.
    pub(crate) tools: ToolCache,
    negotiated: ArcSwap<Negotiated>,
    /// The minimum level of requested log messages.
    log_level: Mutex<Option<LogLevel>>,
    /// Locked while a session is renewed, so that only one caller does it.
    renewing: tokio::sync::Mutex<()>,
    /// The key of the server in the lifecycle cache.
    name: Option<String>,
    /// Notifies the server when the roots change.
    _roots_notifier: Option<connect::RootsNotifier>,
}

/// Generates request ids.
#[derive(Debug, Default)]
pub(crate) struct RequestIds(AtomicI64);

impl RequestIds {
    pub(crate) fn next(&self) -> RequestId {
        RequestId::from(self.next_integer())
    }

    pub(crate) fn next_integer(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl From<Arc<ClientInner>> for Client {
    fn from(inner: Arc<ClientInner>) -> Self {
        let _close_on_drop = Arc::new(CloseOnDrop(Arc::clone(&inner.router)));
        Self {
            inner,
            _close_on_drop,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl ClientInner {
    /// Returns the negotiated state; it changes when the session is renewed.
    pub(crate) fn negotiated(&self) -> Arc<Negotiated> {
        self.negotiated.load_full()
    }

    /// Returns the negotiated state for immediate use, without incrementing its reference count.
    pub(crate) fn negotiated_ref(&self) -> impl Deref<Target = Arc<Negotiated>> {
        self.negotiated.load()
    }

    /// Returns the minimum level of requested log messages.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    fn store_log_level(&self, level: LogLevel) {
        let mut current = lock(&self.log_level);
        *current = Some(level);
    }

    /// Returns the rules of the negotiated revision.
    pub(crate) fn rules(&self) -> Arc<RevisionRules> {
        Arc::clone(&self.negotiated.load().rules)
    }

    /// Sends a notification, or the response to a server request.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let rules = self.rules();
        let headers = encode::version_header(&rules);
        self.transport.send(message, headers, &self.router).await
    }
}
