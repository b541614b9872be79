//! Audit log: a record of every operation.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, SystemTime},
};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use turnbuckle_protocol::{Principal, RequestId, jsonrpc::Truncated, types::Implementation};
use turnbuckle_store::BoxFuture;

use super::{Middleware, Next, Operation, OperationOutcome, OperationResponse};
use crate::request::timestamp::rfc3339;

/// Writes a record of every operation.
///
/// A record contains the SHA-256 of the arguments' JSON text, to compare calls. The arguments themselves are included
/// only [on request](Self::with_arguments).
///
/// As the outermost layer it also records operations that other layers reject.
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

/// A destination for audit records.
pub trait AuditSink: Send + Sync + 'static {
    /// Receives a record. Must not block: the response waits for it.
    fn record(&self, record: &AuditRecord<'_>);
}

/// A completed operation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditRecord<'a> {
    /// The start time.
    pub at: SystemTime,
    /// The duration.
    pub duration: Duration,
    /// The method.
    pub method: &'a str,
    /// The tool, prompt or URI, as the client wrote it.
    pub target: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a RequestId,
    /// The authenticated caller, if the transport knows it.
    pub principal: Option<&'a Principal>,
    /// The client's name and version, as reported by the client and not verified.
    pub client: Option<&'a Implementation>,
    /// The client's address, if it has one.
    pub peer: Option<std::net::SocketAddr>,
    /// The trace id from the client.
    pub trace_id: Option<&'a str>,
    /// The SHA-256 of the arguments' JSON text, in hexadecimal.
    pub arguments_digest: Option<String>,
    /// The arguments' JSON text, if enabled.
    pub arguments: Option<&'a str>,
    /// The outcome.
    pub outcome: OperationOutcome,
}

impl AuditLog {
    /// Creates a log that writes to a sink.
    pub fn new(sink: impl AuditSink) -> Self {
        Self {
            sink: Arc::new(sink),
            with_arguments: false,
        }
    }

    /// Includes the arguments. They contain input of models and users, so protect the log accordingly.
    #[must_use]
    pub fn with_arguments(mut self) -> Self {
        self.with_arguments = true;
        self
    }

    fn record(
        &self,
        operation: &Operation,
        at: SystemTime,
        duration: Duration,
        outcome: OperationOutcome,
    ) {
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
            outcome,
        });
    }
}

impl Middleware for AuditLog {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        Box::pin(async move {
            let (at, started) = (SystemTime::now(), Instant::now());
            next.observe(|outcome| self.record(&operation, at, started.elapsed(), outcome))
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

/// Maximum wait for unwritten records when the last clone is dropped.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes records as lines of JSON to a writer.
///
/// A separate thread writes, so a slow disk does not delay calls. The queue is bounded: records that do not fit are
/// dropped and [counted](Self::dropped), and the next line contains their number (`"dropped"`). Dropping the last clone
/// waits up to two seconds for the queue to be written.
///
/// A line contains `at` (RFC 3339, UTC), `method`, `target`, `ending`, `code` of an error, `durationMs`, `requestId`,
/// `principal`, `client`, `peer`, `traceId`, `argumentsSha256` and `arguments`. Unknown members are omitted.
#[derive(Clone)]
pub struct JsonLines {
    shared: Arc<AuditWriter>,
}

struct AuditWriter {
    /// `None` only during drop.
    queue: Option<SyncSender<Vec<u8>>>,
    /// Signals that everything is written. The lock only makes it `Sync`; the last owner waits.
    written: Mutex<Receiver<()>>,
    dropped: AtomicU64,
    /// Dropped records that no line has reported yet.
    unreported: AtomicU64,
}

impl JsonLines {
    /// Writes to `writer`, with a queue of 4096 records.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self::with_queue(writer, 4096)
    }

    /// Writes to `writer`, with a queue of `records` records.
    ///
    /// # Panics
    ///
    /// If the thread cannot be spawned.
    pub fn with_queue(writer: impl Write + Send + 'static, records: usize) -> Self {
        let (queue, lines) = sync_channel(records.max(1));
        let (done, written) = sync_channel(1);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                write_all(writer, &lines);
                let _ = done.send(());
            })
            .expect("the thread can be spawned");
        Self {
            shared: Arc::new(AuditWriter {
                queue: Some(queue),
                written: written.into(),
                dropped: AtomicU64::new(0),
                unreported: AtomicU64::new(0),
            }),
        }
    }

    /// The number of records dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl JsonLines {
    /// Writes a record of another kind: a line with `at`, the members of the record, and `dropped`.
    pub fn write(&self, at: SystemTime, record: &impl Serialize) {
        self.write_line(|dropped| {
            let at = rfc3339(at);
            encode(&TimedRecord {
                at,
                record,
                dropped,
            })
        });
    }

    /// Queues the line that `line` returns for a number of dropped records.
    fn write_line(&self, line: impl FnOnce(u64) -> Vec<u8>) {
        let shared = &*self.shared;
        let unreported = shared.unreported.swap(0, Ordering::Relaxed);
        let line = line(unreported);
        let queued = shared.queue.as_ref().map(|queue| queue.try_send(line));
        if !matches!(queued, Some(Ok(()))) {
            shared
                .unreported
                .fetch_add(unreported + 1, Ordering::Relaxed);
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AuditSink for JsonLines {
    fn record(&self, record: &AuditRecord<'_>) {
        self.write_line(|dropped| line(record, dropped));
    }
}

/// A record of another kind, as a line.
#[derive(Serialize)]
struct TimedRecord<'a, T> {
    at: String,
    #[serde(flatten)]
    record: &'a T,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u64,
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Ok(written) = self.written.get_mut()
            && written.recv_timeout(FINAL_FLUSH_TIMEOUT) == Err(RecvTimeoutError::Timeout)
        {
            tracing::warn!("audit records were not written in time");
        }
    }
}

/// Writes lines until the channel closes. Flushes whenever the queue is empty.
fn write_all(mut writer: impl Write, lines: &Receiver<Vec<u8>>) {
    let mut failing = false;
    while let Ok(line) = lines.recv() {
        let written = write_some(&mut writer, &line, lines);
        if let (Err(error), false) = (&written, failing) {
            tracing::error!(%error, "writing the audit log failed");
        }
        failing = written.is_err();
    }
}

fn write_some(writer: &mut impl Write, first: &[u8], lines: &Receiver<Vec<u8>>) -> io::Result<()> {
    writer.write_all(first)?;
    while let Ok(line) = lines.try_recv() {
        writer.write_all(&line)?;
    }
    writer.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditLine<'a> {
    at: String,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(rename = "ending")]
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    duration_ms: f64,
    request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<AuditPrincipal<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<std::net::SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u64,
}

#[derive(Serialize)]
struct AuditPrincipal<'a> {
    issuer: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn line(record: &AuditRecord<'_>, dropped: u64) -> Vec<u8> {
    let line = AuditLine {
        at: rfc3339(record.at),
        method: record.method,
        // Text from clients may be long.
        target: record.target.map(|target| Truncated(target).to_string()),
        outcome: record.outcome.as_str(),
        code: match record.outcome {
            OperationOutcome::Error { code } => Some(code),
            _ => None,
        },
        duration_ms: (record.duration.as_secs_f64() * 1e6).round() / 1e3,
        request_id: Truncated(&record.request_id.to_string()).to_string(),
        principal: record.principal.map(|principal| AuditPrincipal {
            issuer: &principal.issuer,
            subject: &principal.subject,
            client: principal.client.as_deref(),
        }),
        client: record.client.map(|client| {
            let named = format!("{}/{}", client.name, client.version);
            Truncated(&named).to_string()
        }),
        peer: record.peer,
        trace_id: record.trace_id,
        arguments_sha256: record.arguments_digest.as_deref(),
        arguments: record.arguments,
        dropped,
    };
    encode(&line)
}

/// Encodes a line. A record that cannot be encoded is empty.
fn encode(line: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

impl std::fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonLines")
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}
