//! Properties of recordings that hold for any content.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use turnbuckle_protocol::recording::{
    AnomalyEntry, AuthEntry, CloseEntry, EndEntry, EntryKind, EventEntry, GapEntry, LinkKind,
    MessageSide, OpenEntry, OutputEntry, RecordedEntry, RecordedText, Recording, RecordingHeader,
    RecordingLimits, RecordingReader, RecordingWriter, RedactedValue, RedactionRules, RequestEntry,
    ResponseEntry, correlate,
};

/// The name of a member that the rules of these tests redact.
const KEY: &str = "password";
/// The beginning of a text that the rules of these tests redact.
const PREFIX: &str = "sk-";

fn side() -> impl Strategy<Value = MessageSide> {
    prop_oneof![Just(MessageSide::Client), Just(MessageSide::Server)]
}

fn text() -> impl Strategy<Value = RecordedText> {
    prop_oneof![
        4 => any::<String>().prop_map(RecordedText::Text),
        1 => any::<u64>().prop_map(|number| RecordedText::Redacted(RedactedValue { number })),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn message_or_noise() -> impl Strategy<Value = EntryKind> {
    let line = prop_oneof![
        json_value().prop_map(|value| {
            json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": { "a": value } })
                .to_string()
                .into_bytes()
        }),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    (side(), line, any::<Option<u64>>()).prop_map(|(from, line, exchange)| {
        let kind = EntryKind::from_line(from, &line);
        match exchange {
            Some(number) => kind.in_exchange(number),
            None => kind,
        }
    })
}

fn kind() -> impl Strategy<Value = EntryKind> {
    let headers = || prop::collection::vec((any::<String>(), text()), 0..4);
    prop_oneof![
        6 => message_or_noise(),
        1 => (prop::collection::vec(text(), 0..4), any::<Vec<String>>()).prop_map(|(command, env)| {
            EntryKind::Open(OpenEntry::program(command).env(env))
        }),
        1 => any::<i32>().prop_map(|code| EntryKind::Close(CloseEntry::code(code))),
        1 => (side(), any::<Vec<u8>>())
            .prop_map(|(from, bytes)| EntryKind::Stderr(OutputEntry::new(from, &bytes))),
        1 => (any::<u64>(), any::<String>(), text(), headers()).prop_map(
            |(exchange, method, url, headers)| {
                let mut request = RequestEntry::new(exchange, method, url);
                request.headers = headers;
                EntryKind::Request(request)
            }
        ),
        1 => (any::<u64>(), any::<u16>(), headers(), any::<Option<u64>>()).prop_map(
            |(exchange, status, headers, first_byte)| {
                let mut response = ResponseEntry::new(exchange, status);
                response.headers = headers;
                response.phases.first_byte = first_byte;
                EntryKind::Response(response)
            }
        ),
        1 => (any::<u64>(), text())
            .prop_map(|(exchange, error)| EntryKind::End(EndEntry::failed(exchange, error))),
        1 => (any::<Option<u64>>(), prop::option::of(text()), any::<Option<u64>>()).prop_map(
            |(exchange, id, retry)| {
                let mut event = EventEntry::default();
                (event.exchange, event.id, event.retry) = (exchange, id, retry);
                EntryKind::Event(event)
            }
        ),
        1 => any::<String>().prop_map(|step| EntryKind::Auth(AuthEntry::new(step))),
        1 => (any::<String>(), text())
            .prop_map(|(rule, text)| EntryKind::Anomaly(AnomalyEntry::new(rule, text))),
        1 => (any::<u64>(), any::<String>())
            .prop_map(|(dropped, reason)| EntryKind::Gap(GapEntry::new(dropped, reason))),
    ]
}

fn entry() -> impl Strategy<Value = RecordedEntry> {
    (any::<u64>(), any::<u64>(), any::<u64>(), kind())
        .prop_map(|(seq, t, conn, kind)| RecordedEntry { seq, t, conn, kind })
}

/// Returns a recording of these entries.
fn file(entries: &[RecordedEntry]) -> Vec<u8> {
    let mut file = Vec::new();
    RecordingWriter::default().write_header(&mut file, RecordingHeader::new("", ""));
    for entry in entries {
        entry.write(&mut file);
    }
    file
}

fn rules() -> RedactionRules {
    RedactionRules::new()
        .key(KEY)
        .pattern(|text| text.starts_with(PREFIX))
}

/// A value with secrets at any depth, and the same value without them.
fn secrets_in(value: Value, secret: &str) -> Value {
    match value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| secrets_in(item, secret));
            Value::Array(items.chain([json!(format!("{PREFIX}{secret}"))]).collect())
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let mut members: serde_json::Map<_, _> = members
                .map(|(name, value)| (name, secrets_in(value, secret)))
                .collect();
            members.insert(KEY.to_owned(), json!({ "deep": [secret] }));
            Value::Object(members)
        }
        other => json!({ "plain": other, KEY: secret }),
    }
}

/// The output of a client and a server with few ids, so that responses are often ambiguous.
fn conversation() -> impl Strategy<Value = Vec<RecordedEntry>> {
    let message = (0..8_u8, 1..4_u8).prop_map(|(form, id)| match form {
        0..3 => json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "requestState": id, "_meta": { "progressToken": id } } }),
        3..6 => json!({ "jsonrpc": "2.0", "id": id, "result": { "requestState": id, "taskId": id } }),
        6 => json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": id } }),
        _ => json!([{ "jsonrpc": "2.0", "id": id, "method": "a" }, { "jsonrpc": "2.0", "id": id, "result": {} }]),
    });
    let entry = (side(), message, 1..3_u64, prop::option::of(1..4_u64));
    prop::collection::vec(entry, 0..60).prop_map(|messages| {
        let numbered = (1..).zip(messages);
        numbered
            .map(|(seq, (from, message, conn, exchange))| {
                let kind = EntryKind::from_line(from, message.to_string().as_bytes());
                let kind = match exchange {
                    Some(number) => kind.in_exchange(number),
                    None => kind,
                };
                RecordedEntry {
                    seq,
                    t: 0,
                    conn,
                    kind,
                }
            })
            .collect()
    })
}

fn from_of(entries: &[RecordedEntry], seq: u64) -> MessageSide {
    match &entries[seq as usize - 1].kind {
        EntryKind::Message(message) => message.from,
        other => panic!("{other:?} is not a message"),
    }
}

proptest! {
    #[test]
    fn written_entries_are_read_unchanged(entries in prop::collection::vec(entry(), 0..12)) {
        let recording = Recording::from_slice(&file(&entries));

        prop_assert_eq!(recording.errors, []);
        prop_assert_eq!(recording.entries, entries);
    }

    #[test]
    fn a_recording_is_read_the_same_however_it_is_split(
        entries in prop::collection::vec(entry(), 0..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        size in 1..50_usize,
    ) {
        let mut bytes = file(&entries);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = Recording::from_slice(&bytes);

        let mut reader = RecordingReader::default();
        let mut lines = Vec::new();
        for mut chunk in bytes.chunks(size) {
            while let Some(line) = reader.next(&mut chunk) {
                lines.push(line);
            }
        }
        while let Some(line) = reader.finish() {
            lines.push(line);
        }

        let errors: Vec<_> = lines.iter().filter_map(|line| line.clone().err()).collect();
        prop_assert_eq!(errors, whole.errors);
    }

    #[test]
    fn no_secret_is_written(
        value in json_value(),
        // No other text of the test contains these letters.
        secret in "ZQX[A-Z]{8,20}",
        output in "[a-z ]{0,20}",
    ) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": { "a": secrets_in(value, &secret) } });
        let mut request = RequestEntry::new(1, "POST", format!("/mcp?a=b&access_token={secret}"));
        request.add_header("Authorization", format!("Bearer {secret}"));
        request.add_header("Mcp-Session-Id", secret.clone());
        request.add_header("X-Password", format!("{PREFIX}{secret}"));
        let mut response = ResponseEntry::new(1, 200);
        response.add_header("Set-Cookie", format!("id={secret}"));
        let stderr = |text: String| EntryKind::Stderr(OutputEntry::new(MessageSide::Server, text.as_bytes()));

        let mut writer = RecordingWriter::new(rules(), RecordingLimits::default());
        let mut out = Vec::new();
        for kind in [
            EntryKind::from_line(MessageSide::Client, message.to_string().as_bytes()),
            EntryKind::from_line(MessageSide::Server, message["params"].to_string().as_bytes()),
            EntryKind::Request(request),
            EntryKind::Response(response),
            EntryKind::Open(OpenEntry::program(["x".to_owned(), "--token".to_owned(), secret.clone()])),
            stderr(format!("{output} password: {secret}")),
            stderr(format!("{output} Bearer {secret} {output}")),
            stderr(format!("{PREFIX}{secret}")),
        ] {
            writer.write(&mut out, 0, 1, kind);
        }

        let text = String::from_utf8(out).unwrap();
        prop_assert!(!text.contains(&secret), "{}", text);
        for line in text.lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{}", line);
        }
    }

    #[test]
    fn a_message_without_secrets_is_written_unchanged(value in json_value(), spaces in "[ \t]{0,3}") {
        let message = json!({ "jsonrpc": "2.0", "method": "m", "params": { "a": value } }).to_string();
        let message = message.replacen(':', &format!("{spaces}:{spaces}"), 1);
        prop_assume!(!message.contains(PREFIX));
        let mut writer = RecordingWriter::new(rules(), RecordingLimits::default());
        let mut out = Vec::new();

        writer.write(&mut out, 0, 1, EntryKind::from_line(MessageSide::Client, message.as_bytes()));

        let expected = format!(r#""message":{message}}}"#);
        prop_assert!(String::from_utf8(out).unwrap().trim_end().ends_with(&expected));
    }

    #[test]
    fn a_response_is_linked_to_one_earlier_request_of_the_other_side(entries in conversation()) {
        let links = correlate(&entries);

        let mut requests = HashSet::new();
        let mut responses = HashSet::new();
        for link in links {
            prop_assert!(link.to < link.from, "{:?}", link);
            if link.kind == LinkKind::Response {
                prop_assert!(requests.insert(link.to), "{:?}", link);
                prop_assert!(responses.insert(link.from), "{:?}", link);
                let (from, to) = (from_of(&entries, link.from.seq), from_of(&entries, link.to.seq));
                prop_assert_eq!(from, to.other());
            }
        }
    }
}
