//! Streams of events: what is on them, and what becomes of them.

mod seen;
mod watched;

use std::collections::HashMap;

use serde_json::Value;

use self::seen::{Stream, streams};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::Tape;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "streams.message-events",
        Area::Streams,
        &["http.sse.event-format"],
    )
    .says("Messages come as events of the type `message`: others are passed over.")
    .cure("Name the events `message`, or give them no name.")
    .gently()
    .on(On::Http)
    .look(|_, tape| message_events(tape)),
    Rule::server(
        "streams.own-messages-only",
        Area::Streams,
        &["http.sse.modern-related", "http.sse.messages-related"],
    )
    .says("What comes on the stream of a request belongs to that request.")
    .cure("Send answers on the stream of their own request, and news of changes where somebody listens to them.")
    .on(On::Http)
    .look(|_, tape| own_messages(tape)),
    Rule::server("streams.not-buffered", Area::Streams, &["http.sse.no-buffering-header"])
        .says("A stream begins with `X-Accel-Buffering: no`, so that proxies hold nothing back.")
        .cure("Send `X-Accel-Buffering: no` with every stream.")
        .on(On::Http)
        .look(|_, tape| not_buffered(tape)),
    Rule::server("streams.event-ids-unique", Area::Streams, &["http.resume.event-id-unique"])
        .says("No two events of a session have the same id, on whatever streams they are.")
        .cure("Put the stream into the id of an event, or count over all streams of a session.")
        .on(On::Http)
        .look(|_, tape| event_ids(tape)),
    Rule::server("streams.get-without-answers", Area::Streams, &["http.get.no-response"])
        .says("No answer comes on a stream that GET has opened, unless it resumes another.")
        .cure("Send answers on the stream of their request only.")
        .on(On::Http)
        .look(|_, tape| get_without_answers(tape)),
    Rule::server("streams.each-message-once", Area::Streams, &["http.streams.no-broadcast"])
        .says("Each message is sent on one stream only.")
        .cure("Choose one of the open streams for a message instead of sending it on all of them.")
        .on(On::Http)
        .look(|_, tape| each_once(tape)),
    Rule::server("streams.primed", Area::Streams, &["http.sse.prime"])
        .says("A stream begins with an event that has an id and no data, from which it can be resumed.")
        .cure("Send `id: …` and an empty `data:` as the first event of a stream.")
        .on(On::Http)
        .look(|_, tape| primed(tape)),
    Rule::server(
        "streams.answer-comes",
        Area::Streams,
        &["http.sse.response-eventually", "http.sse.no-early-close"],
    )
    .says("The answer to a request comes on the stream that was opened for it.")
    .cure("Close the stream of a request when its answer was sent, not before.")
    .on(On::Http)
    .ask(|visit| Box::pin(watched::answer_comes(visit))),
    Rule::server(
        "streams.end-after-answer",
        Area::Streams,
        &["http.sse.close-after", "http.sse.modern-final-closes"],
    )
    .says("The stream of a request ends after its answer.")
    .cure("Close the stream of a request when its answer was sent.")
    .on(On::Http)
    .ask(|visit| Box::pin(watched::ends(visit))),
    Rule::server("streams.replay-own", Area::Streams, &["http.resume.same-stream"])
        .says("A stream that is resumed brings its own messages, and none of another.")
        .cure("Find the stream by the id of its event, and replay what followed on that one.")
        .on(On::Http)
        .ask(|visit| Box::pin(watched::replays_own(visit))),
    Rule::server("streams.survive-disconnection", Area::Streams, &["http.sse.disconnect-not-cancel"])
        .says("A request goes on when its connection is lost: its answer comes when the stream is resumed.")
        .cure("Do not cancel a request because its connection has ended.")
        .on(On::Http)
        .ask(|visit| Box::pin(watched::survives(visit))),
];

fn message_events(tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for stream in some(tape)? {
        for (at, message) in &stream.messages {
            let name = tape.entry(*at).event.map(|event| event.name);
            match name.as_deref() {
                Some("message") => seen.push(*at),
                _ if message.get("jsonrpc").is_none() => {}
                name => {
                    let name = name.unwrap_or_default();
                    let what = format!("a message comes as the event `{name}`");
                    return Err(Unmet::broken(what, [stream.sent, *at]));
                }
            }
        }
    }
    seen.truncate(1);
    Seen::at(seen)
}

fn own_messages(tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for stream in some(tape)?.iter().filter(|stream| stream.answers_request()) {
        let method = stream.request["method"].as_str().unwrap_or_default();
        for (at, message) in &stream.messages {
            let name = message["method"].as_str().unwrap_or_default();
            let changes =
                name.ends_with("/list_changed") || name == "notifications/resources/updated";
            if changes && stream.is_modern() && method != "subscriptions/listen" {
                let what = format!("`{name}` on the stream of `{method}`");
                return Err(Unmet::broken(what, [stream.sent, *at]));
            }
            let answers = message.get("method").is_none() && message.get("id").is_some();
            if answers && !message["id"].is_null() && message["id"] != stream.request["id"] {
                let what = format!(
                    "an answer to {} on the stream of {}",
                    message["id"], stream.request["id"]
                );
                return Err(Unmet::broken(what, [stream.sent, *at]));
            }
            seen.extend([stream.sent, *at]);
        }
    }
    seen.truncate(2);
    Seen::at(seen)
}

fn not_buffered(tape: &Tape) -> Outcome {
    let all = some(tape)?;
    for stream in &all {
        let value = stream.head.header("x-accel-buffering");
        if !value.is_some_and(|value| value.eq_ignore_ascii_case("no")) {
            let what = "a stream without `X-Accel-Buffering: no`";
            return Err(Unmet::broken(what, stream.entries()));
        }
    }
    Seen::at(all.iter().take(1).flat_map(Stream::entries))
}

fn event_ids(tape: &Tape) -> Outcome {
    let mut known: HashMap<(&str, &str), (usize, usize)> = HashMap::new();
    let all = some(tape)?;
    // What is replayed has the id that it had, and without a session nobody knows who is the same client.
    let of_sessions = all
        .iter()
        .filter(|stream| !stream.resumes && stream.session.is_some());
    for stream in of_sessions {
        let session = stream.session.as_deref().unwrap_or_default();
        let mut last = "";
        for (at, entry) in &stream.events {
            let id = entry.event.as_ref().map_or("", |event| &event.id);
            // An event without an id of its own keeps the last one.
            if id.is_empty() || id == last {
                continue;
            }
            last = id;
            if let Some((_, other)) = known.insert((session, id), (stream.channel, *at)) {
                let what = format!("two events have the id `{id}`");
                return Err(Unmet::broken(what, [other, *at]));
            }
        }
    }
    match known.is_empty() {
        true => Err(Unmet::not_applicable("events have no ids")),
        false => Seen::at(known.into_values().map(|(_, at)| at).take(2)),
    }
}

fn get_without_answers(tape: &Tape) -> Outcome {
    let all = streams(tape);
    let mut opened = all
        .iter()
        .filter(|stream| stream.is_get && !stream.resumes)
        .peekable();
    if opened.peek().is_none() {
        return Err(Unmet::not_applicable("GET opens no stream"));
    }
    let mut seen = Vec::new();
    for stream in opened {
        let answers =
            |message: &Value| message.get("method").is_none() && message.get("id").is_some();
        if let Some((at, message)) = stream.messages.iter().find(|(_, message)| answers(message)) {
            let what = format!(
                "an answer to {} on a stream that GET has opened",
                message["id"]
            );
            return Err(Unmet::broken(what, [stream.sent, *at]));
        }
        seen.extend(stream.entries());
    }
    seen.truncate(2);
    Seen::at(seen)
}

/// How many entries apart the copies of a message are at most.
const NEAR: usize = 6;

fn each_once(tape: &Tape) -> Outcome {
    let all = streams(tape);
    let all: Vec<_> = all
        .iter()
        .filter(|stream| !stream.resumes && stream.session.is_some())
        .collect();
    let mut seen = Vec::new();
    for stream in all.iter().filter(|stream| stream.is_get) {
        let beside =
            |other: &&&Stream| other.session == stream.session && other.channel != stream.channel;
        for other in all.iter().filter(beside) {
            // Only what came while both were open could have come on both.
            let both = stream.received.max(other.received);
            let mut messages = stream.messages.iter().chain(&other.messages);
            if let Some((at, _)) = messages.find(|(at, _)| *at > both) {
                seen.extend([stream.sent, other.sent, *at]);
            }
            for (at, message) in &stream.messages {
                let copy = other
                    .messages
                    .iter()
                    .find(|(there, copy)| there.abs_diff(*at) <= NEAR && copy == message);
                if let Some((there, _)) = copy {
                    let what = "the same message on two streams";
                    return Err(Unmet::broken(what, [*at, *there]));
                }
            }
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable(
            "nothing was said while a session had two streams",
        )),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn primed(tape: &Tape) -> Outcome {
    let all = streams(tape);
    let mut answering = all
        .iter()
        .filter(|stream| stream.answers_request() && !stream.events.is_empty())
        .peekable();
    if answering.peek().is_none() {
        return Err(Unmet::not_applicable(
            "no request was answered with a stream",
        ));
    }
    let mut seen = Vec::new();
    for stream in answering {
        let (at, first) = &stream.events[0];
        let id = first.event.as_ref().map_or("", |event| &event.id);
        if id.is_empty() || !first.text.is_empty() {
            let what = "a stream begins with a message";
            return Err(Unmet::broken(what, [stream.sent, *at]));
        }
        seen.extend([stream.sent, *at]);
    }
    seen.truncate(2);
    Seen::at(seen)
}

/// Returns all streams; there has to be one.
fn some(tape: &Tape) -> Result<Vec<Stream>, Unmet> {
    let all = streams(tape);
    match all.is_empty() {
        true => Err(Unmet::not_applicable(
            "the server has answered nothing with a stream",
        )),
        false => Ok(all),
    }
}

/// Says that the server has no streams of the kind that is wanted.
fn no_stream() -> Unmet {
    Unmet::not_applicable("no request was answered with a stream")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Entry, EventHead, Head};

    /// Opens a stream of a session on the tape.
    fn open(tape: &Tape, channel: usize, method: &str) {
        let head = |line: &str, name: &str, value: &str| Head {
            line: line.to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
        };
        let sent = tape.push(Entry {
            head: Some(head(&format!("{method} /mcp"), "mcp-session-id", "one")),
            ..Entry::sent(channel, "")
        });
        tape.push(Entry {
            head: Some(head("200", "content-type", "text/event-stream")),
            answers: Some(sent),
            ..Entry::received(channel, "")
        });
    }

    fn say(tape: &Tape, channel: usize) {
        let event = EventHead {
            id: String::new(),
            name: "message".to_owned(),
        };
        tape.push(Entry {
            event: Some(event),
            ..Entry::received(
                channel,
                r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            )
        });
    }

    #[test]
    fn silence_on_two_streams_tells_nothing() {
        let tape = Tape::default();
        open(&tape, 1, "POST");
        say(&tape, 1);
        open(&tape, 2, "GET");
        assert!(matches!(each_once(&tape), Err(Unmet::NotApplicable(_))));

        say(&tape, 1);

        assert!(each_once(&tape).is_ok());
    }
}
