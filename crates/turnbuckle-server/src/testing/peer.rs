//! A client that a test plays.

mod calls;
mod listening;
mod tasks;
mod voice;

use std::{collections::VecDeque, fmt, io, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use turnbuckle_protocol::Revision;

pub(super) use voice::Voice;

use super::{Connect, Direction, Message, Player, SILENCE, recording::Recording, wire::Wire};
use crate::{Server, lines::Lines};

/// A client that a test plays: what it sends and gets is plain JSON.
///
/// Every message in either direction is [recorded](Self::recorded). Whatever is expected and does not come fails the test
/// after a while, and shows the whole exchange.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Context, Server, Tool, ToolError, testing::Peer};
///
/// async fn count(cx: Context) -> Result<String, ToolError> {
///     cx.progress(1, 1).await;
///     Ok("one".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::new("counter", "1.0.0").tool(Tool::new("count", count));
/// let mut peer = Peer::connect(server).legacy("2025-06-18").await;
///
/// assert_eq!(peer.call_tool("count", json!({})).await.text(), "one");
/// let progress = peer.expect_notification("notifications/progress").await;
/// assert_eq!(progress["total"], 1.0);
/// peer.request("tools/cal", json!({})).await.expect_error(-32601);
/// peer.expect_silence().await;
/// # }
/// ```
pub struct Peer {
    wire: Wire,
    voice: Voice,
    recording: Recording,
    player: Option<Player>,
    patience: Duration,
    /// What came and was not looked at.
    inbox: VecDeque<Value>,
    last_id: i64,
}

/// A question of the server that waits for its answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The id that the answer repeats.
    pub id: Value,
    /// The parameters.
    pub params: Value,
}

impl Peer {
    /// Joins a client to a server, over lines and in the newest revision unless more is said before it is awaited.
    pub fn connect(server: Server) -> Connect {
        Connect::lines(Lines::new(server))
    }

    pub(super) fn new(
        wire: Wire,
        voice: Voice,
        recording: Recording,
        player: Option<Player>,
        patience: Duration,
    ) -> Self {
        Self {
            wire,
            voice,
            recording,
            player,
            patience,
            inbox: VecDeque::new(),
            last_id: 0,
        }
    }

    /// Shakes hands, where the revision has that, and says what the client wants to hear.
    pub(super) async fn introduce(&mut self) {
        if self.voice.is_modern() {
            return;
        }
        let answer = self.request("initialize", self.voice.introduction()).await;
        let negotiated = &answer.expect_result()["protocolVersion"];
        if *negotiated != self.voice.revision.as_str() {
            let revision = self.voice.revision;
            self.fail(format_args!("the server does not speak {revision}"));
        }
        self.notify("notifications/initialized", Value::Null).await;
        if let Some(level) = self.voice.log_level {
            let answer = self.request("logging/setLevel", json!({ "level": level }));
            answer.await.expect_result();
        }
    }

    /// The revision that the peer speaks.
    pub fn revision(&self) -> Revision {
        self.voice.revision
    }

    /// Answers questions from now on, instead of whoever did; see [`Connect::answer`].
    pub fn answer(&mut self, player: impl FnMut(&str, &Value) -> Value + Send + 'static) {
        self.player = Some(Box::new(player));
    }

    /// Waits for a notification and returns its parameters. One that has come already will do, if nobody looked at it.
    pub async fn expect_notification(&mut self, method: &str) -> Value {
        let is_it = |message: &Value| message["method"] == method && message.get("id").is_none();
        let mut message = self.expect(method, is_it).await;
        message["params"].take()
    }

    /// Waits for a question, to answer it with [`reply`](Self::reply), or not at all.
    ///
    /// Only sessions have such questions: where every request stands on its own, an answer says what is asked.
    pub async fn expect_question(&mut self, method: &str) -> Question {
        let is_it = |message: &Value| message["method"] == method && message.get("id").is_some();
        let mut message = self.expect(method, is_it).await;
        Question {
            id: message["id"].take(),
            params: message["params"].take(),
        }
    }

    /// Answers a question.
    pub async fn reply(&mut self, question: &Question, result: Value) {
        let id = &question.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Answers a question with an error.
    pub async fn refuse(&mut self, question: &Question, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        let id = &question.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            .await;
    }

    /// Fails if there is anything that nobody looked at, or if anything comes within a second.
    pub async fn expect_silence(&mut self) {
        let heard = match self.inbox.pop_front() {
            Some(message) => Some(message),
            None => timeout(SILENCE, self.hear()).await.ok(),
        };
        if let Some(message) = heard {
            let what = message["method"].as_str().unwrap_or("an answer");
            self.fail(format_args!("silence was expected, and there is `{what}`"));
        }
    }

    /// All notifications that have come and that nobody looked at, in order.
    pub fn notifications(&mut self) -> Vec<Value> {
        let (notifications, rest) = self
            .inbox
            .drain(..)
            .partition::<VecDeque<_>, _>(|message| message.get("id").is_none());
        self.inbox = rest;
        notifications.into()
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(message).await;
    }

    /// Sends a message as it is, whatever it is.
    pub async fn send(&mut self, message: Value) {
        self.recording.note(Direction::Sent, &message);
        match timeout(self.patience, self.wire.send(&message)).await {
            Ok(Ok(())) => {}
            Ok(Err(trouble)) => self.fail(trouble),
            Err(_) => self.fail("the server does not read"),
        }
    }

    /// The next message that nobody looked at, whatever it is.
    pub async fn next(&mut self) -> Value {
        self.expect("another message", |_| true).await
    }

    /// Every message so far, as it was.
    pub fn messages(&self) -> Vec<Message> {
        self.recording.messages()
    }

    /// The exchange so far for people and for snapshots, a line per message.
    ///
    /// `→` is what the client sent, `←` what it got; requests of the client have numbers with `#`, those of the server
    /// with `?`. What every message repeats about its sender is left out. What is another every time, as request state, cursors
    /// and points in time, reads `…`; tasks are numbered. [`messages`](Self::messages) has it all.
    pub fn recorded(&self) -> String {
        self.recording.transcript()
    }

    /// Leaves: ends its input, or its session, and waits until the server is done with it.
    ///
    /// # Errors
    ///
    /// If the server ended with one.
    pub async fn close(self) -> io::Result<()> {
        match timeout(self.patience, self.wire.close()).await {
            Ok(closed) => closed,
            Err(_) => self.recording.fail("the server does not let go"),
        }
    }

    /// Waits for a message, among those that nobody looked at and those to come.
    async fn expect(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.inbox.iter().position(&is_it) {
            return self.inbox.remove(at).expect("it was just found there");
        }
        let deadline = Instant::now() + self.patience;
        loop {
            let Ok(message) = timeout_at(deadline, self.hear()).await else {
                let waited = self.patience;
                self.fail(format_args!("{what} did not come within {waited:?}"));
            };
            if is_it(&message) {
                return message;
            }
            self.inbox.push_back(message);
        }
    }

    /// The next message that is not answered on the spot.
    async fn hear(&mut self) -> Value {
        loop {
            let message = match self.wire.receive().await {
                Ok(Some(message)) => message,
                Ok(None) => self.fail("the server hung up"),
                Err(trouble) => self.fail(trouble),
            };
            self.recording.note(Direction::Received, &message);
            match self.play(&message) {
                Some(answer) => self.send(answer).await,
                None => return message,
            }
        }
    }

    /// What the client answers to a request of the server, if somebody plays it.
    fn play(&mut self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let result = match message["method"].as_str()? {
            "ping" => json!({}),
            method => self.player.as_mut()?(method, &message["params"]),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    #[track_caller]
    fn fail(&self, why: impl fmt::Display) -> ! {
        self.recording.fail(why)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("revision", &self.voice.revision)
            .finish_non_exhaustive()
    }
}
