//! What both sides said, message by message.

use serde_json::Value;

use crate::tape::{Entry, Tape, Way};

/// A message on the tape.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The number of its entry.
    pub(crate) at: usize,
    /// Its entry.
    pub(crate) entry: Entry,
    /// What it says.
    pub(crate) value: Value,
}

/// Returns all single messages that went one way; a batch is none.
pub(crate) fn messages(tape: &Tape, way: Way) -> impl Iterator<Item = Message> {
    tape.all()
        .into_iter()
        .filter(move |(_, entry)| entry.way == way)
        .filter_map(|(at, entry)| {
            let value = entry.json().filter(Value::is_object)?;
            Some(Message { at, entry, value })
        })
}

/// Returns all that the server said under this name.
pub(crate) fn received(tape: &Tape, method: &str) -> Vec<Message> {
    messages(tape, Way::Received)
        .filter(|message| message.value["method"] == method)
        .collect()
}

/// Returns the message that answers the one at a place, if there is one.
pub(crate) fn answer_to(tape: &Tape, sent: usize) -> Option<Message> {
    messages(tape, Way::Received)
        .filter(|message| message.value.get("method").is_none())
        .find(|message| message.entry.answers == Some(sent))
}
