//! A whole ndjson session: every line of the server is a message, and the session ends when its input does.
//!
//! A line `%% wait` waits half a minute. The rest is sent line by line, with its marks replaced.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnbuckle_fuzz::{bounded, full_server, line_peer::LinePeer, marks::Marks};

fuzz_target!(|input: &[u8]| bounded::run(session(input)));

async fn session(input: &[u8]) {
    let mut peer = LinePeer::new(full_server::server());
    let mut marks = Marks::default();
    let mut answers = 0;
    let mut requests = 0;
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let messages = if line.trim_ascii_end() == b"%% wait" {
            peer.messages(Duration::from_secs(30)).await
        } else {
            // Every object could be a request, and a line that cannot be parsed gets one response.
            requests += 1 + line.iter().filter(|byte| **byte == b'{').count();
            peer.send(&marks.fill(line)).await
        };
        answers += note(&messages, &mut marks);
    }
    answers += note(&peer.finish().await, &mut marks);
    assert!(
        answers <= requests,
        "{answers} answers to {requests} requests"
    );
}

/// Records the values in messages, and counts the responses among them.
fn note(messages: &[Value], marks: &mut Marks) -> usize {
    let entries = messages.iter().flat_map(|message| match message {
        Value::Array(entries) => entries.as_slice(),
        one => std::slice::from_ref(one),
    });
    let mut answers = 0;
    for entry in entries {
        marks.note_message(entry);
        answers += usize::from(entry.get("method").is_none());
    }
    answers
}
