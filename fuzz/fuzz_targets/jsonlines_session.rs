//! A whole session of lines: every line that comes back is a message, and the session ends when its input does.
//!
//! A line `%% wait` lets half a minute pass. The rest is sent as it is, each line for itself, with its marks filled in.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnbuckle_fuzz::{bounded, line_peer::LinePeer, marks::Marks, offer};

fuzz_target!(|input: &[u8]| bounded::run(session(input)));

async fn session(input: &[u8]) {
    let mut peer = LinePeer::new(offer::server());
    let mut marks = Marks::default();
    let mut answers = 0;
    let mut requests = 0;
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let messages = if line.trim_ascii_end() == b"%% wait" {
            peer.messages(Duration::from_secs(30)).await
        } else {
            // Every object could be a request, and what cannot be read is answered once.
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

/// Notes what messages hold, and counts the answers among them.
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
