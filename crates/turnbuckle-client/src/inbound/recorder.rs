//! Records the traffic of clients, as entries of a recording.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use turnbuckle_protocol::{
    codec::sse::ParsedEvent,
    recording::{
        AnomalyEntry, CloseEntry, EndEntry, EntryKind, EventEntry, GapEntry, MessageSide,
        OpenEntry, OutputEntry, RedactionRules, Redactor, RequestEntry, ResponseEntry,
    },
};

use crate::{
    callbacks::notify_observer, inbound::observers::Anomaly, sync::lock,
    transport::stdio::ExitReason,
};

/// Passes the traffic of clients to a callback, as redacted entries of a recording.
///
/// Clones share the clock and the numbers of connections, so several clients, or one that reconnects, can be in one
/// recording. See [`ClientBuilder::recorder`](crate::ClientBuilder::recorder).
#[derive(Clone)]
pub struct Recorder(Arc<RecorderState>);

struct RecorderState {
    started_at: Instant,
    connections: AtomicU64,
    exchanges: AtomicU64,
    redactor: Mutex<Redactor>,
    callback: Box<dyn Fn(TrafficEntry) + Send + Sync>,
}

/// An entry of a recording, with its time and connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrafficEntry {
    /// The time since the recorder was created.
    pub time: Duration,
    /// The connection, counted from 1; over HTTP one for each client, and 0 for none in particular.
    pub connection: u64,
    /// The content.
    pub kind: EntryKind,
}

impl Recorder {
    /// Creates a recorder. The callback is called in the order of the traffic of each connection, and must not block.
    pub fn new(
        rules: RedactionRules,
        callback: impl Fn(TrafficEntry) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(RecorderState {
            started_at: Instant::now(),
            connections: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
            redactor: Mutex::new(Redactor::new(rules)),
            callback: Box::new(callback),
        }))
    }

    /// Records that a connection was opened, and returns its recorder.
    pub(crate) fn open(&self, entry: OpenEntry) -> ConnectionRecorder {
        let connection = ConnectionRecorder {
            recorder: self.clone(),
            connection: self.0.connections.fetch_add(1, Ordering::Relaxed) + 1,
        };
        connection.record(EntryKind::Open(entry));
        connection
    }

    /// Records a tolerated violation of the protocol.
    pub(crate) fn record_anomaly(&self, anomaly: &Anomaly) {
        let entry = AnomalyEntry::new(anomaly.rule(), anomaly.to_string());
        self.record(0, EntryKind::Anomaly(entry));
    }

    fn record(&self, connection: u64, mut kind: EntryKind) {
        let time = self.0.started_at.elapsed();
        lock(&self.0.redactor).redact(&mut kind);
        let entry = TrafficEntry {
            time,
            connection,
            kind,
        };
        notify_observer(|| (self.0.callback)(entry));
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// Records one connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionRecorder {
    recorder: Recorder,
    connection: u64,
}

impl ConnectionRecorder {
    /// Records a line, which may not be a message.
    pub(crate) fn record_line(&self, from: MessageSide, line: &[u8]) {
        self.record(EntryKind::from_line(from, line));
    }

    /// Records a line of stderr.
    pub(crate) fn record_stderr(&self, line: &str) {
        let entry = OutputEntry::new(MessageSide::Server, line.as_bytes());
        self.record(EntryKind::Stderr(entry));
    }

    /// Records a message that was too large to read.
    pub(crate) fn record_too_large(&self) {
        self.record(EntryKind::Gap(GapEntry::new(1, "entry")));
    }

    /// Records the end of the connection.
    pub(crate) fn record_close(&self, exit: Option<ExitReason>) {
        self.record(EntryKind::Close(match exit {
            Some(ExitReason::Code(code)) => CloseEntry::code(code),
            Some(ExitReason::Signal(signal)) => CloseEntry::signal(signal),
            Some(ExitReason::Unknown) | None => CloseEntry::default(),
        }));
    }

    /// Records an HTTP request.
    pub(crate) fn record_request(
        &self,
        method: &Method,
        url: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> ExchangeRecorder {
        let exchanges = &self.recorder.0.exchanges;
        let exchange = ExchangeRecorder {
            connection: self.clone(),
            number: exchanges.fetch_add(1, Ordering::Relaxed) + 1,
            sent_at: Instant::now(),
            last_event_id: String::new(),
            retry: None,
            error: None,
        };
        let mut request = RequestEntry::new(exchange.number, method.as_str(), url);
        for (name, value) in headers {
            request.add_header(name.as_str(), text_of(value));
        }
        self.record(EntryKind::Request(request));
        if !body.is_empty() {
            let message = EntryKind::from_line(MessageSide::Client, body);
            exchange.record(message);
        }
        exchange
    }

    fn record(&self, kind: EntryKind) {
        self.recorder.record(self.connection, kind);
    }
}

/// Records one HTTP exchange; its end when this is dropped.
#[derive(Debug)]
pub(crate) struct ExchangeRecorder {
    connection: ConnectionRecorder,
    number: u64,
    sent_at: Instant,
    last_event_id: String,
    retry: Option<Duration>,
    error: Option<String>,
}

impl ExchangeRecorder {
    /// Records the head of the response. `connect` is the time that a new connection took.
    pub(crate) fn record_response(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        connect: Option<Duration>,
    ) {
        let mut response = ResponseEntry::new(self.number, status.as_u16());
        for (name, value) in headers {
            response.add_header(name.as_str(), text_of(value));
        }
        let waited = self
            .sent_at
            .elapsed()
            .saturating_sub(connect.unwrap_or_default());
        response.phases.connect = connect.map(micros);
        response.phases.first_byte = Some(micros(waited));
        self.record(EntryKind::Response(response));
    }

    /// Records a whole body.
    pub(crate) fn record_body(&self, body: &[u8]) {
        if !body.is_empty() {
            self.record(EntryKind::from_line(MessageSide::Server, body));
        }
    }

    /// Records an event of a stream.
    pub(crate) fn record_event(&mut self, event: &ParsedEvent, retry: Option<Duration>) {
        let mut entry = EventEntry::default();
        if event.last_event_id != self.last_event_id {
            self.last_event_id.clone_from(&event.last_event_id);
            entry.id = Some(event.last_event_id.as_str().into());
        }
        if retry != self.retry {
            self.retry = retry;
            entry.retry = retry.map(|retry| retry.as_millis().try_into().unwrap_or(u64::MAX));
        }
        let is_message = event.name == "message";
        if !is_message {
            entry.name = Some(event.name.clone());
            entry.url = (event.name == "endpoint").then(|| event.data.as_str().into());
        }
        if entry != EventEntry::default() {
            self.record(EntryKind::Event(entry));
        }
        if is_message && !event.data.is_empty() {
            self.record_body(event.data.as_bytes());
        }
    }

    /// Sets the reason why the exchange failed.
    pub(crate) fn fail(&mut self, error: &dyn fmt::Display) {
        self.error = Some(error.to_string());
    }

    fn record(&self, kind: EntryKind) {
        self.connection.record(kind.in_exchange(self.number));
    }
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        let number = self.number;
        let end = match self.error.take() {
            Some(error) => EndEntry::failed(number, error),
            None => EndEntry::new(number),
        };
        self.record(EntryKind::End(end));
    }
}

fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros().try_into().unwrap_or(u64::MAX)
}
