//! Accepts connections of a client and runs the replies of the mock server.

mod connection;
mod http;
mod http_sse;
mod ndjson;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

pub(crate) use self::connection::MockConnection;
use self::http_sse::HttpSseChannel;
use super::{
    script::{ScriptStep, ScriptedReply},
    server::{MockServer, ReceivedRequest},
    target::TransportKind,
};
use crate::{
    engine::transcript::{HttpHead, Transcript, TranscriptEntry},
    lock,
};

/// The maximum number of messages and bytes per scenario; a client that sends more is disconnected.
pub(crate) const MAX_MESSAGES: usize = 4_000;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The time to wait for data in flight after the client exits.
const DRAIN_TIME: Duration = Duration::from_millis(300);

/// A running mock server.
pub(crate) struct MockHost {
    /// Decides on replies.
    pub(crate) mock: MockServer,
    /// The recorded messages.
    pub(crate) transcript: Transcript,
    /// The time limit for responses of the client.
    response_timeout: Duration,
    state: Mutex<HostState>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct HostState {
    last_activity: Option<Instant>,
    /// The number of messages and bytes received.
    received: (usize, usize),
    /// Server requests without a response.
    waiting: HashMap<String, oneshot::Sender<()>>,
    /// Requests that the client has cancelled.
    cancelled: HashSet<String>,
    /// The event stream of HTTP+SSE.
    events: Option<HttpSseChannel>,
}

impl MockHost {
    pub(crate) fn new(
        mock: MockServer,
        transcript: &Transcript,
        response_timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            mock,
            transcript: transcript.clone(),
            response_timeout,
            state: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    /// Serves a connection.
    pub(crate) fn serve_connection(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) {
        let host = self.clone();
        match self.mock.transport_kind {
            TransportKind::Http => self.spawn(http::serve(host, stream)),
            TransportKind::Ndjson => self.spawn(ndjson::serve(host, stream)),
        }
    }

    /// Returns the time of the last message.
    pub(crate) fn last_activity(&self) -> Option<Instant> {
        self.state().last_activity
    }

    /// Records a message of the client; returns its number, or `None` over the limit.
    fn record(&self, entry: TranscriptEntry) -> Option<usize> {
        self.note_activity();
        let received = &mut self.state().received;
        *received = (received.0 + 1, received.1.saturating_add(entry.text.len()));
        (received.0 <= MAX_MESSAGES && received.1 <= MAX_BYTES).then(|| self.transcript.push(entry))
    }

    /// Returns whether the client has exceeded the limit.
    pub(crate) fn is_over_limit(&self) -> bool {
        let received = self.state().received;
        received.0 > MAX_MESSAGES || received.1 > MAX_BYTES
    }

    /// Waits for data in flight after the client has exited.
    pub(crate) async fn drain(&self) {
        let end = Instant::now() + DRAIN_TIME;
        while Instant::now() < end {
            {
                let mut tasks = self.tasks();
                while tasks.try_join_next().is_some() {}
                if tasks.is_empty() {
                    return;
                }
            }
            sleep(DRAIN_TIME / 30).await;
        }
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        let tasks = std::mem::take(&mut *self.tasks());
        self.state().events = None;
        // `shutdown` waits until the aborted tasks have dropped their connections.
        let mut tasks = tasks;
        tasks.shutdown().await;
    }

    /// Processes a message of the client; returns the reply, if one is needed.
    fn receive(&self, message: &Value, head: Option<&HttpHead>) -> Option<ScriptedReply> {
        self.note_activity();
        let id = message.get("id");
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(_)) => Some(self.mock.reply(&ReceivedRequest {
                method,
                message,
                head,
            })),
            (Some("notifications/cancelled"), None) => {
                let id = message["params"]["requestId"].to_string();
                self.state().cancelled.insert(id);
                None
            }
            (None, Some(id)) => {
                if let Some(waiting) = self.state().waiting.remove(&id.to_string()) {
                    let _ = waiting.send(());
                }
                None
            }
            (Some(_) | None, None) => None,
        }
    }

    fn note_activity(&self) {
        self.state().last_activity = Some(Instant::now());
    }

    /// Runs the steps of a reply on a connection.
    async fn run_steps(&self, steps: Vec<ScriptStep>, mut connection: MockConnection) {
        for step in steps {
            let is_open = match step {
                ScriptStep::Send(message) if self.is_cancelled(&message) => true,
                ScriptStep::Send(message) => connection.send(&message).await,
                ScriptStep::SendAndWait(client_request) => {
                    self.send_and_wait(&client_request, &mut connection).await
                }
                ScriptStep::StartEventIds(ids) => connection.start_event_ids(ids).await,
                ScriptStep::Retry(pause) => connection.retry(pause).await,
                ScriptStep::Wait(time) => {
                    tokio::time::sleep(time).await;
                    true
                }
                ScriptStep::Interrupt => {
                    self.mock.note("cut");
                    return connection.interrupt().await;
                }
                ScriptStep::KeepOpen => return connection.keep_open().await,
            };
            if !is_open {
                return;
            }
        }
    }

    async fn send_and_wait(&self, client_request: &Value, connection: &mut MockConnection) -> bool {
        let (sender, response) = oneshot::channel();
        let id = client_request["id"].to_string();
        self.state().waiting.insert(id, sender);
        let is_open = connection.send(client_request).await;
        let _ = timeout(self.response_timeout, response).await;
        is_open
    }

    fn is_cancelled(&self, message: &Value) -> bool {
        let responses = message.get("method").is_none();
        responses && self.state().cancelled.contains(&message["id"].to_string())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        lock(&self.state)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        lock(&self.tasks)
    }
}
