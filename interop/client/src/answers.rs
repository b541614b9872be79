//! What the client says when the server asks, and what it was told on the way.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use turnbuckle_client::Oddity;
use turnbuckle_protocol::types::LoggingMessageParams;

/// A clone hears and remembers the same.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    declines: bool,
    questions: Vec<String>,
    logs: Vec<Value>,
    oddities: Vec<String>,
}

impl Answers {
    /// Takes the data of all log messages that have come.
    pub(crate) fn take_logs(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().logs)
    }

    /// Returns what was odd about the server.
    pub(crate) fn oddities(&self) -> Vec<String> {
        self.lock().oddities.clone()
    }

    pub(crate) fn logged(&self, message: LoggingMessageParams) {
        self.lock().logs.push(message.data);
    }

    pub(crate) fn odd(&self, oddity: &Oddity) {
        self.lock().oddities.push(oddity.to_string());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
