//! Audit records as lines of JSON, written by a thread of their own.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::Duration,
};

use serde::Serialize;
use turnbuckle_protocol::jsonrpc::Excerpt;

use super::{AuditRecord, AuditSink};
use crate::{middleware::Ending, timestamp::rfc3339};

/// How long whoever drops the last clone waits for what is still to be written.
const FAREWELL: Duration = Duration::from_secs(2);

/// Writes records as lines of JSON to anything that can be written to.
///
/// A thread of its own does the writing, so a slow disk delays no call. Between the two is a queue of bounded length;
/// records that find it full are dropped and [counted](Self::dropped), and the next line that is written says how many
/// are missing before it (`"dropped"`). Dropping the last clone waits up to two seconds until the queue is written.
///
/// A line has `at` (RFC 3339, UTC), `method`, `target`, `ending`, `code` of an error, `durationMs`, `requestId`, `principal`,
/// `client`, `peer`, `traceId`, `argumentsSha256` and `arguments`; what is not known is left out.
#[derive(Clone)]
pub struct JsonLines {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` only while it is dropped.
    queue: Option<SyncSender<Vec<u8>>>,
    /// Says when all is written. Behind a lock only to be shareable: the last owner alone waits.
    written: Mutex<Receiver<()>>,
    dropped: AtomicU64,
    /// How many of the dropped ones no line has told of yet.
    untold: AtomicU64,
}

impl JsonLines {
    /// Writes to `writer`, with a queue of 4096 records.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self::with_queue(writer, 4096)
    }

    /// Writes to `writer`, with a queue of this length.
    ///
    /// # Panics
    ///
    /// If the operating system gives no thread.
    pub fn with_queue(writer: impl Write + Send + 'static, records: usize) -> Self {
        let (queue, lines) = sync_channel(records.max(1));
        let (done, written) = sync_channel(1);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                write_all(writer, &lines);
                let _ = done.send(());
            })
            .expect("the operating system gives a thread");
        Self {
            shared: Arc::new(Shared {
                queue: Some(queue),
                written: written.into(),
                dropped: AtomicU64::new(0),
                untold: AtomicU64::new(0),
            }),
        }
    }

    /// How many records were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl AuditSink for JsonLines {
    fn record(&self, record: &AuditRecord<'_>) {
        let shared = &*self.shared;
        let untold = shared.untold.swap(0, Ordering::Relaxed);
        let line = line(record, untold);
        let queued = shared.queue.as_ref().map(|queue| queue.try_send(line));
        if !matches!(queued, Some(Ok(()))) {
            shared.untold.fetch_add(untold + 1, Ordering::Relaxed);
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue = None;
        if let Ok(written) = self.written.get_mut()
            && written.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Timeout)
        {
            tracing::warn!("audit records were left unwritten");
        }
    }
}

/// Writes lines until nobody sends any more; flushes whenever there is nothing to write.
fn write_all(mut writer: impl Write, lines: &Receiver<Vec<u8>>) {
    let mut failing = false;
    while let Ok(line) = lines.recv() {
        let written = write_some(&mut writer, &line, lines);
        if let (Err(error), false) = (&written, failing) {
            tracing::error!(%error, "the audit log cannot be written");
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
struct Line<'a> {
    at: String,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    ending: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    duration_ms: f64,
    request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Who<'a>>,
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
struct Who<'a> {
    issuer: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn line(record: &AuditRecord<'_>, dropped: u64) -> Vec<u8> {
    let line = Line {
        at: rfc3339(record.at),
        method: record.method,
        // What a client invents may be long.
        target: record.target.map(|target| Excerpt(target).to_string()),
        ending: record.ending.as_str(),
        code: match record.ending {
            Ending::Error { code } => Some(code),
            _ => None,
        },
        duration_ms: (record.duration.as_secs_f64() * 1e6).round() / 1e3,
        request_id: Excerpt(&record.request_id.to_string()).to_string(),
        principal: record.principal.map(|who| Who {
            issuer: &who.issuer,
            subject: &who.subject,
            client: who.client.as_deref(),
        }),
        client: record.client.map(|client| {
            let named = format!("{}/{}", client.name, client.version);
            Excerpt(&named).to_string()
        }),
        peer: record.peer,
        trace_id: record.trace_id,
        arguments_sha256: record.arguments_digest.as_deref(),
        arguments: record.arguments,
        dropped,
    };
    let mut bytes = serde_json::to_vec(&line).expect("strings and numbers can be written");
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
