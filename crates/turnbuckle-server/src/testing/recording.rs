//! Everything that was said, and how it reads.

mod transcript;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use transcript::Transcript;

/// A message, as the client sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Who sent it.
    pub direction: Direction,
    /// The whole message.
    pub json: Value,
}

/// Which way a message went, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
}

impl Message {
    /// The method, of a request or a notification.
    pub fn method(&self) -> Option<&str> {
        self.json.get("method").and_then(Value::as_str)
    }

    /// Says whether it is a notification.
    pub fn is_notification(&self) -> bool {
        self.method().is_some() && self.json.get("id").is_none()
    }
}

/// All messages of one peer; whoever holds a clone can tell what happened.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    title: Arc<str>,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Recording {
    pub(super) fn new(title: impl fmt::Display) -> Self {
        Self {
            title: title.to_string().into(),
            messages: Arc::default(),
        }
    }

    pub(super) fn note(&self, direction: Direction, json: &Value) {
        let json = json.clone();
        self.lock().push(Message { direction, json });
    }

    pub(super) fn messages(&self) -> Vec<Message> {
        self.lock().clone()
    }

    /// The exchange, a line per message.
    pub(super) fn transcript(&self) -> String {
        let mut transcript = Transcript::default();
        let messages = self.lock();
        let lines = messages.iter().map(|message| transcript.line(message));
        lines.collect()
    }

    /// Fails a test, with everything that led to it.
    #[track_caller]
    pub(super) fn fail(&self, why: impl fmt::Display) -> ! {
        let transcript = self.transcript();
        let said = match transcript.as_str() {
            "" => "nothing was said",
            said => said,
        };
        panic!("{why}\n\n{}:\n{said}", self.title)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
