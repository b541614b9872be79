//! What both sides said, message by message.

use std::ops::Range;

use serde_json::{Map, Value};

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

/// Returns all single messages that went one way; a batch is none, and what came before is not repeated.
pub(crate) fn messages(tape: &Tape, way: Way) -> impl Iterator<Item = Message> {
    messages_within(tape, way, 0..tape.len())
}

/// Returns the single messages of a part of the tape that went one way.
pub(crate) fn messages_within(
    tape: &Tape,
    way: Way,
    part: Range<usize>,
) -> impl Iterator<Item = Message> {
    part.map(|at| (at, tape.entry(at)))
        .filter(move |(_, entry)| entry.way == way && !entry.replayed)
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

/// Returns all messages that answer another one.
pub(crate) fn answers(tape: &Tape) -> impl Iterator<Item = Message> {
    messages(tape, Way::Received).filter(|message| message.value.get("method").is_none())
}

/// Returns the message that answers the one at a place, if there is one.
pub(crate) fn answer_to(tape: &Tape, sent: usize) -> Option<Message> {
    answers(tape).find(|message| message.entry.answers == Some(sent))
}

/// Something that a server asks its client.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The number of the entry that asks it.
    pub(crate) at: usize,
    /// Whether it is a request of its own, and not part of a result.
    pub(crate) by_request: bool,
    /// `elicitation/create`, `sampling/createMessage`, or `roots/list`.
    pub(crate) method: String,
    /// What is asked.
    pub(crate) params: Value,
}

/// Returns what the server has asked its client, by requests and in results.
pub(crate) fn questions(tape: &Tape) -> Vec<Question> {
    questions_within(tape, 0..tape.len())
}

/// Returns what the server has asked its client in a part of the tape.
pub(crate) fn questions_within(tape: &Tape, part: Range<usize>) -> Vec<Question> {
    messages_within(tape, Way::Received, part)
        .flat_map(|message| {
            let by_request =
                message.value.get("id").is_some() && message.value.get("method").is_some();
            let asked: Vec<Value> = match by_request {
                true => vec![message.value],
                false => {
                    let requests = message.value["result"]["inputRequests"].as_object();
                    requests
                        .into_iter()
                        .flat_map(Map::values)
                        .cloned()
                        .collect()
                }
            };
            let question = move |asked: Value| {
                Some(Question {
                    at: message.at,
                    by_request,
                    method: asked["method"].as_str()?.to_owned(),
                    params: asked["params"].clone(),
                })
            };
            asked.into_iter().filter_map(question)
        })
        .filter(|question| question.method != "ping")
        .collect()
}
