//! What both sides said, message by message.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::tape::{Entry, Tape, Way};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

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

/// Says whether something was heard in the conversation in which a request was sent.
///
/// Others may be open, in which the server says something of its own accord: on other lines, in other sessions of HTTP.
pub(crate) fn is_heard_with(tape: &Tape, sent: usize, at: usize) -> bool {
    let (sent, heard) = (tape.entry(sent), tape.entry(at));
    let Some(head) = sent.head else {
        return heard.channel == sent.channel;
    };
    let asked = heard.answers.and_then(|asked| tape.entry(asked).head);
    asked.is_none_or(|asked| asked.header(SESSION) == head.header(SESSION))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Head;

    fn request(tape: &Tape, channel: usize, line: &str, session: &str) -> usize {
        let head = Head {
            line: line.to_owned(),
            headers: vec![(SESSION.to_owned(), session.to_owned())],
        };
        tape.push(Entry {
            head: Some(head),
            ..Entry::sent(channel, "")
        })
    }

    fn event(tape: &Tape, channel: usize, answers: usize) -> usize {
        tape.push(Entry {
            answers: Some(answers),
            ..Entry::received(channel, r#"{"jsonrpc":"2.0","method":"roots/list","id":1}"#)
        })
    }

    #[test]
    fn what_another_session_hears_is_not_heard_here() {
        let tape = Tape::default();
        let call = request(&tape, 1, "POST /mcp", "mine");
        let mine = request(&tape, 2, "GET /mcp", "mine");
        let other = request(&tape, 3, "GET /mcp", "another");

        assert!(is_heard_with(&tape, call, event(&tape, 1, call)));
        assert!(is_heard_with(&tape, call, event(&tape, 2, mine)));
        assert!(!is_heard_with(&tape, call, event(&tape, 3, other)));
    }

    #[test]
    fn what_another_line_brings_is_not_heard_here() {
        let tape = Tape::default();
        let call = tape.push(Entry::sent(1, "{}"));
        let mine = tape.push(Entry::received(1, "{}"));
        let other = tape.push(Entry::received(2, "{}"));

        assert!(is_heard_with(&tape, call, mine));
        assert!(!is_heard_with(&tape, call, other));
    }
}
