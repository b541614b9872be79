//! A request that waits for its answer.

use std::time::Duration;

use serde_json::Value;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::outcome::Unmet;
use crate::tape::Tape;
use crate::wire::{
    Said,
    http::{Draft, Event},
};

/// How long a stream may be silent before nobody reads it any more.
const READING: Duration = Duration::from_secs(60);

/// The same for one that is there for what nobody has asked for.
const LISTENING: Duration = Duration::from_secs(24 * 60 * 60);

/// A request that waits for its answer. Dropping it on HTTP closes its connection.
pub(crate) struct Pending {
    /// The id by which its answer is known; a message without one has none.
    pub(crate) id: Option<Value>,
    /// The entry of the request, once it is known.
    pub(crate) sent: Option<usize>,
    pub(super) status: Option<u16>,
    pub(super) head: Option<usize>,
    pub(super) posting: Option<Posting>,
}

/// A POST that is under way.
pub(crate) struct Posting {
    said: mpsc::UnboundedReceiver<Said>,
    reading: JoinHandle<()>,
}

impl Pending {
    pub(super) fn on_line(id: Option<Value>, sent: usize) -> Self {
        Self {
            id,
            sent: Some(sent),
            status: None,
            head: None,
            posting: None,
        }
    }

    pub(super) fn posted(id: Option<Value>, posting: Posting) -> Self {
        Self {
            id,
            sent: None,
            status: None,
            head: None,
            posting: Some(posting),
        }
    }

    pub(super) fn head(&mut self, status: u16, number: usize, tape: &Tape) {
        self.status = Some(status);
        self.head = Some(number);
        self.sent = tape.entry(number).answers;
    }

    /// Says whether a message is the answer.
    ///
    /// What comes back on HTTP without an id answers the request that it comes back for.
    pub(super) fn is_answered_by(&self, message: &Value) -> bool {
        if message.get("method").is_some() {
            return false;
        }
        match (message.get("id"), &self.id) {
            (Some(theirs), Some(ours)) if theirs == ours => true,
            (Some(Value::Null) | None, _) => {
                self.posting.is_some() && message.get("error").is_some()
            }
            _ => false,
        }
    }
}

impl Posting {
    pub(super) fn start(draft: Draft, tape: Tape) -> Self {
        Self::read(draft, tape, READING)
    }

    /// Reads for as long as anybody listens.
    pub(super) fn listen(draft: Draft, tape: Tape) -> Self {
        Self::read(draft, tape, LISTENING)
    }

    fn read(draft: Draft, tape: Tape, patience: Duration) -> Self {
        let (sender, said) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let end = read(draft, &tape, &sender, patience).await;
            let _ = sender.send(Said::End(end));
        });
        Self { said, reading }
    }

    /// Returns what comes next; `None` if nothing does for so long.
    pub(super) async fn next(&mut self, patience: Duration) -> Option<Said> {
        match timeout(patience, self.said.recv()).await {
            Ok(said) => Some(said.unwrap_or(Said::End(None))),
            Err(_) => None,
        }
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Reads a whole response; returns what was not in order.
async fn read(
    draft: Draft,
    tape: &Tape,
    said: &mpsc::UnboundedSender<Said>,
    patience: Duration,
) -> Option<String> {
    let mut reply = match draft.send().await {
        Ok(reply) => reply,
        Err(Unmet::Broken { what, .. }) => return Some(what),
        Err(_) => return None,
    };
    said.send(Said::Head(reply.status, reply.received)).ok()?;
    if !reply.is_stream() {
        let text = reply.text(READING).await;
        if !text.is_empty() {
            tape.amend(reply.received, |entry| entry.answers = Some(reply.sent));
            said.send(Said::Message(reply.received)).ok()?;
        }
        return None;
    }
    loop {
        match reply.event(patience).await {
            // An event without data only names an id to resume from.
            Event::Message(number) if tape.entry(number).text.is_empty() => {}
            Event::Message(number) => said.send(Said::Message(number)).ok()?,
            Event::Silence | Event::End => return None,
        }
    }
}
