//! Where a server is played: connections come in, and what the client says is answered as the scene wants it.

mod http;
mod http_sse;
mod lines;
mod voice;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use self::http_sse::Events;
pub(crate) use self::voice::Voice;
use super::cue::{Cue, Reply};
use super::part::{Heard, Part};
use super::target::Carrier;
use crate::tape::{Entry, Head, Tape};

/// So many messages are heard in a scene, and so many bytes; a client that says more is not listened to any longer.
pub(crate) const MOST: usize = 4_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// How long the last words of a client may be under way once it has gone.
const UNDER_WAY: Duration = Duration::from_millis(300);

/// A server that is being played.
pub(crate) struct Stage {
    /// What it says.
    pub(crate) part: Part,
    /// All that was said.
    pub(crate) tape: Tape,
    /// How long the client may take to answer us.
    patience: Duration,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    last_heard: Option<Instant>,
    /// How many messages were heard, and how many bytes.
    heard: (usize, usize),
    /// Our own questions that are not answered yet.
    waiting: HashMap<String, oneshot::Sender<()>>,
    /// Requests that the client has cancelled.
    cancelled: HashSet<String>,
    /// The stream of HTTP+SSE on which everything is said.
    events: Option<Events>,
}

impl Stage {
    pub(crate) fn new(part: Part, tape: &Tape, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            part,
            tape: tape.clone(),
            patience,
            state: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    /// Serves a connection.
    pub(crate) fn welcome(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) {
        let stage = self.clone();
        match self.part.carrier {
            Carrier::Http => self.spawn(http::serve(stage, stream)),
            Carrier::Lines => self.spawn(lines::serve(stage, stream)),
        }
    }

    /// Returns when the client was last heard.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        self.state().last_heard
    }

    /// Takes something down that the client said; returns its number, and nothing once there is too much.
    fn take_down(&self, entry: Entry) -> Option<usize> {
        self.touch();
        let heard = &mut self.state().heard;
        *heard = (heard.0 + 1, heard.1.saturating_add(entry.text.len()));
        (heard.0 <= MOST && heard.1 <= MOST_BYTES).then(|| self.tape.push(entry))
    }

    /// Says whether the client has said more than is listened to.
    pub(crate) fn is_flooded(&self) -> bool {
        let heard = self.state().heard;
        heard.0 > MOST || heard.1 > MOST_BYTES
    }

    /// Hears what a client said that has gone: it may still be under way.
    pub(crate) async fn settle(&self) {
        let end = Instant::now() + UNDER_WAY;
        while Instant::now() < end {
            {
                let mut tasks = self.tasks();
                while tasks.try_join_next().is_some() {}
                if tasks.is_empty() {
                    return;
                }
            }
            sleep(UNDER_WAY / 30).await;
        }
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        let tasks = std::mem::take(&mut *self.tasks());
        self.state().events = None;
        // Dropping the tasks ends them; what they hold is gone when they have been seen to end.
        let mut tasks = tasks;
        tasks.shutdown().await;
    }

    /// Takes note of something that the client said, and says what is to be done; nothing for what nobody answers.
    fn hear(&self, message: &Value, head: Option<&Head>) -> Option<Reply> {
        self.touch();
        let id = message.get("id");
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(_)) => Some(self.part.reply(&Heard {
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

    fn touch(&self) {
        self.state().last_heard = Some(Instant::now());
    }

    /// Does what is to be done, by a voice.
    async fn perform(&self, cues: Vec<Cue>, mut voice: Voice) {
        for cue in cues {
            let going = match cue {
                Cue::Say(message) if self.is_cancelled(&message) => true,
                Cue::Say(message) => voice.say(&message).await,
                Cue::Ask(question) => self.ask(&question, &mut voice).await,
                Cue::Mark(ids) => voice.mark(ids).await,
                Cue::Retry(pause) => voice.retry(pause).await,
                Cue::Wait(time) => {
                    tokio::time::sleep(time).await;
                    true
                }
                Cue::Cut => {
                    self.part.note("cut");
                    return voice.cut().await;
                }
                Cue::Stay => return voice.stay().await,
            };
            if !going {
                return;
            }
        }
    }

    async fn ask(&self, question: &Value, voice: &mut Voice) -> bool {
        let (sender, answered) = oneshot::channel();
        let id = question["id"].to_string();
        self.state().waiting.insert(id, sender);
        let going = voice.say(question).await;
        let _ = timeout(self.patience, answered).await;
        going
    }

    fn is_cancelled(&self, message: &Value) -> bool {
        let answers = message.get("method").is_none();
        answers && self.state().cancelled.contains(&message["id"].to_string())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
