//! A client: one connection to one server.

mod asking;
mod connecting;
mod expiry;
mod methods;
mod reissue;
mod telling;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::types::{Implementation, LogLevel};

pub(crate) use asking::{Beside, Reply, complete, over_unless};
pub(crate) use expiry::Begun;
pub(crate) use reissue::is_lost_response;

use crate::builder::ClientBuilder;
use crate::error::TransportError;
use crate::hub::Hub;
use crate::lifecycle::{Agreed, Rules};
use crate::message;
use crate::server::Server;
use crate::stdio::Process;
use crate::tools::KnownTools;
use crate::transport::Transport;

/// How long it may take to end the tasks of dropped calls before the connection is closed.
const CANCELLING: Duration = Duration::from_secs(2);

/// A connection to a server.
///
/// Cheap to clone: all clones share the connection. It ends with [`close`](Self::close), or when the last clone is
/// dropped.
///
/// ```no_run
/// # async fn run(reader: tokio::io::Empty, writer: tokio::io::Sink) -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
///
/// let client = turnbuckle_client::connect_lines(reader, writer).await?;
/// let output = client.call_tool("forecast", json!({ "city": "Oslo" })).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    /// Only clones share it; what works for the client in the background does not.
    _held: Arc<Held>,
}

/// Lets go of the connection with the last clone of a client, whatever still works for it.
struct Held(Arc<Hub>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// What the clones of a client share.
pub(crate) struct Inner {
    pub(crate) transport: Transport,
    pub(crate) hub: Arc<Hub>,
    pub(crate) ids: Ids,
    pub(crate) settings: ClientBuilder,
    /// What is remembered of the tools that were listed.
    pub(crate) tools: KnownTools,
    agreed: ArcSwap<Agreed>,
    /// From which level on log messages are wanted.
    log_level: Mutex<Option<LogLevel>>,
    /// Held while a session is begun anew, so that only one caller does it.
    renewing: tokio::sync::Mutex<()>,
    /// The name under which the era of the server is remembered.
    name: Option<String>,
    /// Tells the server when the roots change.
    _telling: Option<telling::Telling>,
}

/// Gives every request an id of its own.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicI64);

impl Ids {
    pub(crate) fn next(&self) -> RequestId {
        RequestId::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Client {
    /// Describes a client that is not connected yet.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// A client without a name of its own.
    pub(crate) fn plain() -> ClientBuilder {
        Self::builder("turnbuckle", env!("CARGO_PKG_VERSION"))
    }

    /// Returns what the server said about itself.
    pub fn server(&self) -> Arc<Server> {
        Arc::clone(&self.inner.agreed.load().server)
    }

    /// Returns the child process that the server is, if it is one.
    pub fn process(&self) -> Option<Process> {
        self.inner.transport.process()
    }

    /// Ends the connection in an orderly way. Calls that still wait end with an error.
    ///
    /// First waits, for a few seconds at most, until the server has been told of calls that were dropped.
    pub async fn close(&self) {
        self.inner.hub.task_cancellations.wait(CANCELLING).await;
        self.inner.transport.close(&self.inner.hub).await;
    }
}

impl From<Arc<Inner>> for Client {
    fn from(inner: Arc<Inner>) -> Self {
        let _held = Arc::new(Held(Arc::clone(&inner.hub)));
        Self { inner, _held }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Returns what was agreed upon; it may change when a session is begun anew.
    pub(crate) fn agreed(&self) -> Arc<Agreed> {
        self.agreed.load_full()
    }

    /// The same for a moment only, which takes less.
    pub(crate) fn agreed_now(&self) -> impl Deref<Target = Arc<Agreed>> {
        self.agreed.load()
    }

    /// Returns from which level on log messages are wanted.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_log_level(&self, level: LogLevel) {
        let mut kept = self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *kept = Some(level);
    }

    /// Returns the rules of the revision that is spoken.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.agreed.load().rules)
    }

    /// Sends an answer to a request of the server's.
    pub(crate) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let rules = self.rules();
        let headers = message::version_header(&rules);
        self.transport.send(message, headers, &self.hub).await
    }
}
