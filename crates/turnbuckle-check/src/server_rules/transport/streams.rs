//! Event streams: their messages and their end.

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
    .requirement("Messages have the event type `message`; clients ignore other types.")
    .hint("Set the event type to `message`, or omit it.")
    .warn_only()
    .transports(Transports::Http)
    .passive(|_, transcript| message_events(transcript)),
    Rule::server(
        "streams.own-messages-only",
        Area::Streams,
        &["http.sse.modern-related", "http.sse.messages-related"],
    )
    .requirement("The messages on the stream of a request belong to that request.")
    .hint("Send responses on the stream of their request, and change notifications on the streams of their subscribers.")
    .transports(Transports::Http)
    .passive(|_, transcript| own_messages(transcript)),
    Rule::server("streams.not-buffered", Area::Streams, &["http.sse.no-buffering-header"])
        .requirement("A stream response has `X-Accel-Buffering: no`, so that proxies do not buffer it.")
        .hint("Send `X-Accel-Buffering: no` with every stream.")
        .transports(Transports::Http)
        .passive(|_, transcript| not_buffered(transcript)),
    Rule::server("streams.event-ids-unique", Area::Streams, &["http.resume.event-id-unique"])
        .requirement("Event ids are unique within a session, across all streams.")
        .hint("Include the stream in the event id, or use one counter for all streams of a session.")
        .transports(Transports::Http)
        .passive(|_, transcript| event_ids(transcript)),
    Rule::server("streams.get-without-answers", Area::Streams, &["http.get.no-response"])
        .requirement("A GET stream carries no responses, unless it resumes another stream.")
        .hint("Send responses only on the stream of their request.")
        .transports(Transports::Http)
        .passive(|_, transcript| get_without_responses(transcript)),
    Rule::server("streams.each-message-once", Area::Streams, &["http.streams.no-broadcast"])
        .requirement("Each message is sent on one stream only.")
        .hint("Select one of the open streams for a message instead of sending it on all of them.")
        .transports(Transports::Http)
        .passive(|_, transcript| each_once(transcript)),
    Rule::server("streams.primed", Area::Streams, &["http.sse.prime"])
        .requirement("A stream starts with an event that has an id and no data, from which the client can resume.")
        .hint("Send `id: …` and an empty `data:` as the first event of a stream.")
        .transports(Transports::Http)
        .passive(|_, transcript| primed(transcript)),
    Rule::server(
        "streams.answer-comes",
        Area::Streams,
        &["http.sse.response-eventually", "http.sse.no-early-close"],
    )
    .requirement("The server sends the response to a request on the stream of the request.")
    .hint("Close the stream of a request after its response, not before.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(active::response_arrives(ctx))),
    Rule::server(
        "streams.end-after-answer",
        Area::Streams,
        &["http.sse.close-after", "http.sse.modern-final-closes"],
    )
    .requirement("The stream of a request ends after its response.")
    .hint("Close the stream of a request after its response.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(active::ends(ctx))),
    Rule::server("streams.replay-own", Area::Streams, &["http.resume.same-stream"])
        .requirement("A resumed stream replays its messages, and none of other streams.")
        .hint("Find the stream by the event id, and replay the later events of that stream.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(active::replays_own(ctx))),
    Rule::server("streams.survive-disconnection", Area::Streams, &["http.sse.disconnect-not-cancel"])
        .requirement("A request continues when its connection is lost, and a resumed stream delivers its response.")
        .hint("Do not cancel a request because its connection was closed.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(active::survives(ctx))),
];

fn message_events(transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for stream in require_streams(transcript)? {
        for (at, message) in &stream.messages {
            let name = transcript.entry(*at).event.map(|event| event.name);
            match name.as_deref() {
                Some("message") => evidence.push(*at),
                _ if message.get("jsonrpc").is_none() => {}
                name => {
                    let name = name.unwrap_or_default();
                    let observed = format!("a message in an event of type `{name}`");
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
    for stream in require_streams(transcript)?
        .iter()
        .filter(|stream| stream.is_of_request())
    {
        let method = stream.request["method"].as_str().unwrap_or_default();
        for (at, message) in &stream.messages {
            let name = message["method"].as_str().unwrap_or_default();
            let is_change =
                name.ends_with("/list_changed") || name == "notifications/resources/updated";
            if is_change && stream.is_modern() && method != "subscriptions/listen" {
                let observed = format!("`{name}` on the stream of `{method}`");
                return Err(NotPassed::violation(observed, [stream.sent, *at]));
            }
            let is_response = message.get("method").is_none() && message.get("id").is_some();
            if is_response && !message["id"].is_null() && message["id"] != stream.request["id"] {
                let observed = format!(
                    "a response to {} on the stream of {}",
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
    let all = require_streams(transcript)?;
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
    let mut ids: HashMap<(&str, &str), (usize, usize)> = HashMap::new();
    let all = require_streams(transcript)?;
    // A replayed event keeps its id, and without a session two streams may belong to two clients.
    let of_sessions = all
        .iter()
        .filter(|stream| !stream.resumes && stream.session.is_some());
    for stream in of_sessions {
        let session = stream.session.as_deref().unwrap_or_default();
        let mut last = "";
        for (at, entry) in &stream.events {
            let id = entry.event.as_ref().map_or("", |event| &event.id);
            // An event without an id has the id of the previous one.
            if id.is_empty() || id == last {
                continue;
            }
            last = id;
            if let Some((_, other)) = ids.insert((session, id), (stream.channel, *at)) {
                let observed = format!("two events have the id `{id}`");
                return Err(NotPassed::violation(observed, [other, *at]));
            }
        }
    }
    if ids.is_empty() {
        Err(NotPassed::not_applicable("the events lack ids"))
    } else {
        Evidence::from_entries(ids.into_values().map(|(_, at)| at).take(2))
    }
}

fn get_without_responses(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let mut opened = all
        .iter()
        .filter(|stream| stream.is_get && !stream.resumes)
        .peekable();
    if opened.peek().is_none() {
        return Err(NotPassed::not_applicable("no GET opened a stream"));
    }
    let mut evidence = Vec::new();
    for stream in opened {
        let is_response =
            |message: &Value| message.get("method").is_none() && message.get("id").is_some();
        if let Some((at, message)) = stream
            .messages
            .iter()
            .find(|(_, message)| is_response(message))
        {
            let observed = format!("a response to {} on a GET stream", message["id"]);
            return Err(NotPassed::violation(observed, [stream.sent, *at]));
        }
        evidence.extend(stream.entries());
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

/// The maximum distance in the transcript between two copies of a message.
const MAX_COPY_DISTANCE: usize = 6;

fn each_once(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let all: Vec<_> = all
        .iter()
        .filter(|stream| !stream.resumes && stream.session.is_some())
        .collect();
    let mut evidence = Vec::new();
    for stream in all.iter().filter(|stream| stream.is_get) {
        let is_concurrent = |other: &&&ObservedStream| {
            other.session == stream.session && other.channel != stream.channel
        };
        for other in all.iter().filter(is_concurrent) {
            // Only messages that arrive while both streams are open could arrive on both.
            let both_open = stream.received.max(other.received);
            let mut messages = stream.messages.iter().chain(&other.messages);
            if let Some((at, _)) = messages.find(|(at, _)| *at > both_open) {
                evidence.extend([stream.sent, other.sent, *at]);
            }
            for (at, message) in &stream.messages {
                let copy = other.messages.iter().find(|(copy_at, copy)| {
                    copy_at.abs_diff(*at) <= MAX_COPY_DISTANCE && copy == message
                });
                if let Some((copy_at, _)) = copy {
                    let observed = "the same message on two streams";
                    return Err(NotPassed::violation(observed, [*at, *copy_at]));
                }
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "no message arrived while a session had two streams",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn primed(transcript: &Transcript) -> Outcome {
    let all = streams(transcript);
    let mut of_requests = all
        .iter()
        .filter(|stream| stream.is_of_request() && !stream.events.is_empty())
        .peekable();
    if of_requests.peek().is_none() {
        return Err(NotPassed::not_applicable("no response was a stream"));
    }
    let mut evidence = Vec::new();
    for stream in of_requests {
        let (at, first) = &stream.events[0];
        let id = first.event.as_ref().map_or("", |event| &event.id);
        if id.is_empty() || !first.text.is_empty() {
            let observed = "a stream starts with a message";
            return Err(NotPassed::violation(observed, [stream.sent, *at]));
        }
        evidence.extend([stream.sent, *at]);
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

/// Returns all streams; at least one.
fn require_streams(transcript: &Transcript) -> Result<Vec<ObservedStream>, NotPassed> {
    let all = streams(transcript);
    if all.is_empty() {
        Err(NotPassed::not_applicable("the server sent no stream"))
    } else {
        Ok(all)
    }
}

/// Returns the reason that no response was a stream.
fn no_stream() -> NotPassed {
    NotPassed::not_applicable("no response was a stream")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::transcript::{HttpHead, SseEventHead, TranscriptEntry};

    /// Adds a stream of a session to the transcript.
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

    fn add_message(transcript: &Transcript, channel: usize) {
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
    fn two_streams_without_messages_are_not_evidence() {
        let transcript = Transcript::default();
        open(&transcript, 1, "POST");
        add_message(&transcript, 1);
        open(&transcript, 2, "GET");
        assert!(matches!(
            each_once(&transcript),
            Err(NotPassed::NotApplicable(_))
        ));

        add_message(&transcript, 1);

        assert!(each_once(&transcript).is_ok());
    }
}
