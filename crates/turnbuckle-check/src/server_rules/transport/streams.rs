//! Streams of events: what is on them, and what becomes of them.

mod active;
mod observed;

use std::collections::HashMap;

use serde_json::Value;

use self::observed::{ObservedStream, streams};
use crate::{
    engine::{
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Transcript,
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "streams.message-events",
        Area::Streams,
        &["http.sse.event-format"],
    )
    .requirement("Messages come as events of the type `message`: others are passed over.")
    .fix("Name the events `message`, or give them no name.")
    .warn_only()
    .transports(Transports::Http)
    .passive(|_, transcript| message_events(transcript)),
    Rule::server(
        "streams.own-messages-only",
        Area::Streams,
        &["http.sse.modern-related", "http.sse.messages-related"],
    )
    .requirement("What comes on the stream of a request belongs to that request.")
    .fix("Send answers on the stream of their own request, and news of changes where somebody listens to them.")
    .transports(Transports::Http)
    .passive(|_, transcript| own_messages(transcript)),
    Rule::server("streams.not-buffered", Area::Streams, &["http.sse.no-buffering-header"])
        .requirement("A stream begins with `X-Accel-Buffering: no`, so that proxies hold nothing back.")
        .fix("Send `X-Accel-Buffering: no` with every stream.")
        .transports(Transports::Http)
        .passive(|_, transcript| not_buffered(transcript)),
    Rule::server("streams.event-ids-unique", Area::Streams, &["http.resume.event-id-unique"])
        .requirement("No two events of a session have the same id, on whatever streams they are.")
        .fix("Put the stream into the id of an event, or count over all streams of a session.")
        .transports(Transports::Http)
        .passive(|_, transcript| event_ids(transcript)),
    Rule::server("streams.get-without-answers", Area::Streams, &["http.get.no-response"])
        .requirement("No answer comes on a stream that GET has opened, unless it resumes another.")
        .fix("Send answers on the stream of their request only.")
        .transports(Transports::Http)
        .passive(|_, transcript| get_without_answers(transcript)),
    Rule::server("streams.each-message-once", Area::Streams, &["http.streams.no-broadcast"])
        .requirement("Each message is sent on one stream only.")
        .fix("Choose one of the open streams for a message instead of sending it on all of them.")
        .transports(Transports::Http)
        .passive(|_, transcript| each_once(transcript)),
    Rule::server("streams.primed", Area::Streams, &["http.sse.prime"])
        .requirement("A stream begins with an event that has an id and no data, from which it can be resumed.")
        .fix("Send `id: …` and an empty `data:` as the first event of a stream.")
        .transports(Transports::Http)
        .passive(|_, transcript| primed(transcript)),
    Rule::server(
        "streams.answer-comes",
        Area::Streams,
        &["http.sse.response-eventually", "http.sse.no-early-close"],
    )
    .requirement("The answer to a request comes on the stream that was opened for it.")
    .fix("Close the stream of a request when its answer was sent, not before.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(active::answer_comes(ctx))),
    Rule::server(
        "streams.end-after-answer",
        Area::Streams,
        &["http.sse.close-after", "http.sse.modern-final-closes"],
    )
    .requirement("The stream of a request ends after its answer.")
    .fix("Close the stream of a request when its answer was sent.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(active::ends(ctx))),
    Rule::server("streams.replay-own", Area::Streams, &["http.resume.same-stream"])
        .requirement("A stream that is resumed brings its own messages, and none of another.")
        .fix("Find the stream by the id of its event, and replay what followed on that one.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(active::replays_own(ctx))),
    Rule::server("streams.survive-disconnection", Area::Streams, &["http.sse.disconnect-not-cancel"])
        .requirement("A request goes on when its connection is lost: its answer comes when the stream is resumed.")
        .fix("Do not cancel a request because its connection has ended.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(active::survives(ctx))),
];

fn message_events(transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for stream in some(transcript)? {
        for (at, message) in &stream.messages {
            let name = transcript.entry(*at).event.map(|event| event.name);
            match name.as_deref() {
                Some("message") => evidence.push(*at),
                _ if message.get("jsonrpc").is_none() => {}
                name => {
                    let name = name.unwrap_or_default();
                    let observed = format!("a message comes as the event `{name}`");
                    return Err(NotPassed::violation(observed, [stream.sent, *at]));
                }
            }
        }
    }
    evidence.truncate(1);
    Evidence::from_entries(evidence)
}

fn own_messages(transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for stream in some(transcript)?
        .iter()
        .filter(|stream| stream.answers_request())
    {
        let method = stream.request["method"].as_str().unwrap_or_default();
        for (at, message) in &stream.messages {
            let name = message["method"].as_str().unwrap_or_default();
            let changes =
                name.ends_with("/list_changed") || name == "notifications/resources/updated";
            if changes && stream.is_modern() && method != "subscriptions/listen" {
                let observed = format!("`{name}` on the stream of `{method}`");
                return Err(NotPassed::violation(observed, [stream.sent, *at]));
            }
            let responses = message.get("method").is_none() && message.get("id").is_some();
            if responses && !message["id"].is_null() && message["id"] != stream.request["id"] {
                let observed = format!(
                    "an answer to {} on the stream of {}",
                    message["id"], stream.request["id"]
                );
                return Err(NotPassed::violation(observed, [stream.sent, *at]));
            }
            evidence.extend([stream.sent, *at]);
        }
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

fn not_buffered(transcript: &Transcript) -> Outcome {
    let all = some(transcript)?;
    for stream in &all {
        let value = stream.head.header("x-accel-buffering");
        if !value.is_some_and(|value| value.eq_ignore_ascii_case("no")) {
            let observed = "a stream without `X-Accel-Buffering: no`";
            return Err(NotPassed::violation(observed, stream.entries()));
        }
    }
    Evidence::from_entries(all.iter().take(1).flat_map(ObservedStream::entries))
}

fn event_ids(transcript: &Transcript) -> Outcome {
    let mut known: HashMap<(&str, &str), (usize, usize)> = HashMap::new();
    let all = some(transcript)?;
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
                let observed = format!("two events have the id `{id}`");
                return Err(NotPassed::violation(observed, [other, *at]));
            }
        }
    }
    if known.is_empty() {
        Err(NotPassed::not_applicable("events have no ids"))
    } else {
        Evidence::from_entries(known.into_values().map(|(_, at)| at).take(2))
    }
}

fn get_without_answers(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let mut opened = all
        .iter()
        .filter(|stream| stream.is_get && !stream.resumes)
        .peekable();
    if opened.peek().is_none() {
        return Err(NotPassed::not_applicable("GET opens no stream"));
    }
    let mut evidence = Vec::new();
    for stream in opened {
        let responses =
            |message: &Value| message.get("method").is_none() && message.get("id").is_some();
        if let Some((at, message)) = stream
            .messages
            .iter()
            .find(|(_, message)| responses(message))
        {
            let observed = format!(
                "an answer to {} on a stream that GET has opened",
                message["id"]
            );
            return Err(NotPassed::violation(observed, [stream.sent, *at]));
        }
        evidence.extend(stream.entries());
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

/// How many entries apart the copies of a message are at most.
const NEAR: usize = 6;

fn each_once(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let all: Vec<_> = all
        .iter()
        .filter(|stream| !stream.resumes && stream.session.is_some())
        .collect();
    let mut evidence = Vec::new();
    for stream in all.iter().filter(|stream| stream.is_get) {
        let beside = |other: &&&ObservedStream| {
            other.session == stream.session && other.channel != stream.channel
        };
        for other in all.iter().filter(beside) {
            // Only what came while both were open could have come on both.
            let both = stream.received.max(other.received);
            let mut messages = stream.messages.iter().chain(&other.messages);
            if let Some((at, _)) = messages.find(|(at, _)| *at > both) {
                evidence.extend([stream.sent, other.sent, *at]);
            }
            for (at, message) in &stream.messages {
                let copy = other
                    .messages
                    .iter()
                    .find(|(there, copy)| there.abs_diff(*at) <= NEAR && copy == message);
                if let Some((there, _)) = copy {
                    let observed = "the same message on two streams";
                    return Err(NotPassed::violation(observed, [*at, *there]));
                }
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "nothing was said while a session had two streams",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn primed(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let mut answering = all
        .iter()
        .filter(|stream| stream.answers_request() && !stream.events.is_empty())
        .peekable();
    if answering.peek().is_none() {
        return Err(NotPassed::not_applicable(
            "no request was answered with a stream",
        ));
    }
    let mut evidence = Vec::new();
    for stream in answering {
        let (at, first) = &stream.events[0];
        let id = first.event.as_ref().map_or("", |event| &event.id);
        if id.is_empty() || !first.text.is_empty() {
            let observed = "a stream begins with a message";
            return Err(NotPassed::violation(observed, [stream.sent, *at]));
        }
        evidence.extend([stream.sent, *at]);
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

/// Returns all streams; there has to be one.
fn some(transcript: &Transcript) -> Result<Vec<ObservedStream>, NotPassed> {
    let all = streams(transcript);
    if all.is_empty() {
        Err(NotPassed::not_applicable(
            "the server has answered nothing with a stream",
        ))
    } else {
        Ok(all)
    }
}

/// Says that the server has no streams of the kind that is wanted.
fn no_stream() -> NotPassed {
    NotPassed::not_applicable("no request was answered with a stream")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::transcript::{HttpHead, SseEventHead, TranscriptEntry};

    /// Opens a stream of a session on the tape.
    fn open(transcript: &Transcript, channel: usize, method: &str) {
        let head = |line: &str, name: &str, value: &str| HttpHead {
            start_line: line.to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
        };
        let sent = transcript.push(TranscriptEntry {
            head: Some(head(&format!("{method} /mcp"), "mcp-session-id", "one")),
            ..TranscriptEntry::sent(channel, "")
        });
        transcript.push(TranscriptEntry {
            head: Some(head("200", "content-type", "text/event-stream")),
            response_to: Some(sent),
            ..TranscriptEntry::received(channel, "")
        });
    }

    fn say(transcript: &Transcript, channel: usize) {
        let event = SseEventHead {
            id: String::new(),
            name: "message".to_owned(),
        };
        transcript.push(TranscriptEntry {
            event: Some(event),
            ..TranscriptEntry::received(
                channel,
                r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
            )
        });
    }

    #[test]
    fn silence_on_two_streams_tells_nothing() {
        let transcript = Transcript::default();
        open(&transcript, 1, "POST");
        say(&transcript, 1);
        open(&transcript, 2, "GET");
        assert!(matches!(
            each_once(&transcript),
            Err(NotPassed::NotApplicable(_))
        ));

        say(&transcript, 1);

        assert!(each_once(&transcript).is_ok());
    }
}
