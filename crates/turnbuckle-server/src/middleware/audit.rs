//! Who did what, when, and what came of it.

mod json_lines;

pub use json_lines::JsonLines;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};
use tokio::time::Instant;
use turnbuckle_protocol::{Principal, RequestId, types::Implementation};
use turnbuckle_store::BoxFuture;

use super::{Answer, Ending, Middleware, Next, Operation};

/// Writes a record of every operation.
///
/// Of the arguments a record has the SHA-256 of their JSON text: enough to find out whether two calls were the same, or
/// whether a call was the one you know of. The arguments themselves are only in it if [asked for](Self::with_arguments).
///
/// As the outermost layer it also sees what other layers refuse.
///
/// ```
/// use turnbuckle_server::{Server, middleware::{AuditLog, JsonLines}};
///
/// # fn run() -> std::io::Result<()> {
/// let file = std::fs::File::options().append(true).create(true).open("audit.jsonl")?;
/// let server = Server::new("bank", "1.0.0").layer(AuditLog::new(JsonLines::new(file)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AuditLog {
    sink: Arc<dyn AuditSink>,
    with_arguments: bool,
}

/// Where records go.
pub trait AuditSink: Send + Sync + 'static {
    /// Takes a record. It must not block: an answer waits for it.
    fn record(&self, record: &AuditRecord<'_>);
}

/// What is known of an operation that has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditRecord<'a> {
    /// When it began.
    pub at: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// The method.
    pub method: &'a str,
    /// The tool, prompt or URI, as the client wrote it.
    pub target: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a RequestId,
    /// Who asked, if the transport could tell.
    pub principal: Option<&'a Principal>,
    /// What the client says about itself; nobody has checked it.
    pub client: Option<&'a Implementation>,
    /// Where the client is, if it has an address.
    pub peer: Option<std::net::SocketAddr>,
    /// The trace it belongs to, as the client said.
    pub trace_id: Option<&'a str>,
    /// The SHA-256 of the arguments' JSON text, in hexadecimal.
    pub arguments_digest: Option<String>,
    /// The arguments' JSON text, if asked for.
    pub arguments: Option<&'a str>,
    /// How it ended.
    pub ending: Ending,
}

impl AuditLog {
    /// Writes records into a sink.
    pub fn new(sink: impl AuditSink) -> Self {
        Self {
            sink: Arc::new(sink),
            with_arguments: false,
        }
    }

    /// Writes the arguments too. They are whatever a model or a person typed: treat the log accordingly.
    #[must_use]
    pub fn with_arguments(mut self) -> Self {
        self.with_arguments = true;
        self
    }

    fn record(&self, operation: &Operation, at: SystemTime, duration: Duration, ending: Ending) {
        let arguments = operation.arguments();
        self.sink.record(&AuditRecord {
            at,
            duration,
            method: operation.method(),
            target: operation.target(),
            request_id: operation.request_id(),
            principal: operation.principal(),
            client: operation.client(),
            peer: operation.get().copied(),
            trace_id: operation.trace().and_then(|trace| trace.trace_id()),
            arguments_digest: arguments.map(digest),
            arguments: arguments.filter(|_| self.with_arguments),
            ending,
        });
    }
}

impl Middleware for AuditLog {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (at, begun) = (SystemTime::now(), Instant::now());
            next.observe(|ending| self.record(&operation, at, begun.elapsed(), ending))
                .await
        })
    }
}

impl<T: AuditSink + ?Sized> AuditSink for Arc<T> {
    fn record(&self, record: &AuditRecord<'_>) {
        (**self).record(record);
    }
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog")
            .field("with_arguments", &self.with_arguments)
            .finish_non_exhaustive()
    }
}
