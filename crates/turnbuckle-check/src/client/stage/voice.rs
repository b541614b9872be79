//! What a played server speaks by: a line, or a stream of events.

use std::{fmt::Write as _, io, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{Mutex, mpsc},
};

use crate::tape::{Entry, EventHead, Tape};

/// Speaks to a client; what is said goes on the tape.
pub(crate) struct Voice {
    tape: Tape,
    channel: usize,
    /// The entry that is answered.
    answers: usize,
    /// How the ids of events begin, and how many there were.
    ids: Option<(&'static str, usize)>,
    way: Way,
}

/// A line that several voices share.
pub(crate) type Line = Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>;

/// Where the pieces of a response go.
pub(crate) type Pieces = mpsc::Sender<io::Result<Bytes>>;

enum Way {
    Line(Line),
    Events(Pieces),
}

impl Voice {
    /// Speaks on a line.
    pub(crate) fn line(tape: &Tape, channel: usize, answers: usize, line: &Line) -> Self {
        Self::new(tape, channel, answers, Way::Line(line.clone()))
    }

    /// Speaks by events of a stream.
    pub(crate) fn events(tape: &Tape, channel: usize, answers: usize, pieces: Pieces) -> Self {
        Self::new(tape, channel, answers, Way::Events(pieces))
    }

    fn new(tape: &Tape, channel: usize, answers: usize, way: Way) -> Self {
        Self {
            tape: tape.clone(),
            channel,
            answers,
            ids: None,
            way,
        }
    }

    /// Says something; returns whether anybody still listens.
    pub(crate) async fn say(&mut self, message: &Value) -> bool {
        let text = message.to_string();
        let id = self.next_id();
        self.tape.push(Entry {
            answers: Some(self.answers),
            event: matches!(self.way, Way::Events(_)).then(|| EventHead {
                id: id.clone().unwrap_or_default(),
                name: "message".to_owned(),
            }),
            ..Entry::sent(self.channel, text.as_str())
        });
        match &self.way {
            Way::Line(line) => {
                let mut line = line.lock().await;
                let written = line.write_all(format!("{text}\n").as_bytes()).await;
                written.is_ok() && line.flush().await.is_ok()
            }
            Way::Events(_) => self.event(id.as_deref(), &text).await,
        }
    }

    /// Gives the events from here on ids; the first has no data.
    pub(crate) async fn mark(&mut self, ids: &'static str) -> bool {
        self.ids = Some((ids, 0));
        match &self.way {
            Way::Line(_) => true,
            Way::Events(_) => {
                let id = self.next_id();
                self.event(id.as_deref(), "").await
            }
        }
    }

    /// Says how long to wait before connecting again; and something that only says that we are there.
    pub(crate) async fn retry(&mut self, pause: Duration) -> bool {
        let text = format!("retry: {}\n\n", pause.as_millis());
        self.piece(text).await
    }

    /// Says that we are there, where there is a way to say only that.
    pub(crate) async fn comment(&mut self) -> bool {
        self.piece(": still here\n\n".to_owned()).await
    }

    /// Breaks a stream off.
    pub(crate) async fn cut(self) {
        if let Way::Events(pieces) = self.way {
            let _ = pieces
                .send(Err(io::ErrorKind::ConnectionReset.into()))
                .await;
        }
    }

    /// Stays until the client lets go; a line is let go of at once, as others speak on it too.
    pub(crate) async fn stay(self) {
        if let Way::Events(pieces) = self.way {
            pieces.closed().await;
        }
    }

    fn next_id(&mut self) -> Option<String> {
        let (ids, count) = self.ids.as_mut()?;
        *count += 1;
        Some(format!("{ids}-{count}"))
    }

    async fn event(&self, id: Option<&str>, data: &str) -> bool {
        let mut text = String::new();
        if let Some(id) = id {
            let _ = writeln!(text, "id: {id}");
        }
        self.piece(format!("event: message\n{text}data: {data}\n\n"))
            .await
    }

    async fn piece(&self, text: String) -> bool {
        match &self.way {
            Way::Line(_) => true,
            Way::Events(pieces) => pieces.send(Ok(text.into())).await.is_ok(),
        }
    }
}
