//! A recording is read the same however it is split, written again unchanged, redacted without a trace, and correlated
//! only backwards.
//!
//! An input is a recording. Its texts that contain `hide` are secrets.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::recording::{
    EntryKind, LinkKind, MessageSide, RecordedEntry, Recording, RecordingError, RecordingHeader,
    RecordingLimits, RecordingLine, RecordingReader, RecordingWriter, RedactionRules, correlate,
};

const LIMIT: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes.chunks(bytes.len().max(1)));
    assert_eq!(read(bytes.chunks(1)), whole);
    assert_eq!(read(bytes.chunks(bytes.len() % 31 + 1)), whole);

    let recording = Recording::from_slice(bytes);
    assert_round_trip(&recording.entries);
    assert_redacted(&recording.entries, bytes);
    assert_links(&recording.entries);
});

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<RecordingLine, RecordingError>> {
    let mut reader = RecordingReader::new(LIMIT);
    let mut lines = Vec::new();
    for mut chunk in chunks {
        while let Some(line) = reader.next(&mut chunk) {
            lines.push(line);
        }
    }
    while let Some(line) = reader.finish() {
        lines.push(line);
    }
    lines
}

fn assert_round_trip(entries: &[RecordedEntry]) {
    let mut file = Vec::new();
    RecordingWriter::default().write_header(&mut file, RecordingHeader::new("", ""));
    for entry in entries {
        entry.write(&mut file);
    }
    let again = Recording::from_slice(&file);
    assert_eq!(again.errors, []);
    assert_eq!(again.entries, entries);
}

/// No message shows a secret, whether it is an entry or a line of the input. Tests of the crate check the other entries.
fn assert_redacted(entries: &[RecordedEntry], bytes: &[u8]) {
    let rules = RedactionRules::new()
        .key("hide")
        .pattern(|text| text.contains("hide"));
    let mut writer = RecordingWriter::new(rules, RecordingLimits::default());
    let mut out = Vec::new();
    writer.write_header(&mut out, RecordingHeader::new("", ""));
    for entry in entries {
        writer.write(&mut out, entry.t, entry.conn, entry.kind.clone());
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        writer.write(
            &mut out,
            0,
            1,
            EntryKind::from_line(MessageSide::Client, line),
        );
    }
    let redacted = Recording::from_slice(&out);
    assert_eq!(redacted.errors, []);
    for entry in &redacted.entries {
        if let EntryKind::Message(message) = &entry.kind {
            assert_no_secret(message.message.as_str());
        }
    }
}

fn assert_no_secret(json: &str) {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else {
        return;
    };
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(text) => assert!(!text.contains("hide"), "{json}"),
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
}

fn assert_links(entries: &[RecordedEntry]) {
    // Numbers of a foreign file may repeat.
    let numbered = (1..).zip(entries.iter().cloned());
    let entries: Vec<_> = numbered
        .map(|(seq, entry)| RecordedEntry { seq, ..entry })
        .collect();
    let mut answered = HashSet::new();
    for link in correlate(&entries) {
        assert!(link.to < link.from, "{link:?}");
        if link.kind == LinkKind::Response {
            assert!(answered.insert(link.to), "{link:?}");
        }
    }
}
