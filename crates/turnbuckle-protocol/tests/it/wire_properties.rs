//! Properties that hold for any bytes.

use proptest::prelude::*;
use serde_json::Value;
use turnbuckle_protocol::{
    RequestId,
    codec::{
        headers::{
            check_argument, decode, encode, encode_argument, parse_accept, parse_content_type,
        },
        ndjson::{DecodedLine, LineDecoder},
        sse::{ParsedEvent, SseDecoder, SseEvent, SseLimits},
    },
    jsonrpc::{Incoming, Message, Params, RawObject, code, parse, write_request},
};

/// Texts that resemble JSON, most of them slightly invalid.
fn jsonish() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"a\"", "\"\"", "1", "-0", "1.5e3", "01", "true", "false", "null", " ", "\n",
            "\"\\u0041\"", "\"\\ud83d\\ude00\"", "\"\\ud800\"", "\"\\x\"", "\"", "\\", "é", "\u{0}", "\u{feff}", "-", ".", "e",
        ]).prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

/// Any JSON value.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Numbers that serde_json reads back unchanged.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Value::from),
        "[\"\\\\a\u{0}-\u{1f}é😀]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..10)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A JSON text of any value, with one byte changed.
fn damaged_json() -> impl Strategy<Value = Vec<u8>> {
    (json(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(value, at, byte)| {
        let mut bytes = value.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    })
}

/// Returns whether the bytes are accepted as JSON between the brackets of a parameter.
fn passes(bytes: &[u8]) -> bool {
    let head = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":["#;
    parse(&[head, bytes, b"]}}"].concat()).is_ok()
}

/// Returns whether serde_json accepts the same bytes in the same position, if it can decide.
fn passes_serde_json(bytes: &[u8]) -> Option<bool> {
    let text = [b"[", bytes, b"]"].concat();
    match serde_json::from_slice::<Value>(&text) {
        Ok(_) => Some(true),
        // Its numbers are limited to 64-bit floats, unlike the grammar; it stops reading there.
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

fn read_lines(chunks: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let owned = |line: DecodedLine<'_>| match line {
        DecodedLine::Message(line) => Some(line.to_vec()),
        DecodedLine::TooLong | DecodedLine::LspHeader => None,
    };
    let mut lines = LineDecoder::new(12);
    let mut all = Vec::new();
    for chunk in chunks {
        let mut chunk = *chunk;
        while let Some(line) = lines.next(&mut chunk) {
            all.push(owned(line));
        }
    }
    all.extend(lines.finish().map(owned));
    all
}

fn read_events(chunks: &[&[u8]]) -> (Vec<Option<ParsedEvent>>, String) {
    let mut decoder = SseDecoder::new(SseLimits {
        line: 16,
        event: 24,
    });
    let mut all = Vec::new();
    for chunk in chunks {
        let mut chunk = *chunk;
        while let Some(event) = decoder.next(&mut chunk).transpose() {
            all.push(event.ok());
        }
    }
    (all, decoder.last_event_id().to_owned())
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "data",
        "data:",
        "id:",
        "event:",
        "retry:",
        ":",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "x",
        "é",
        "\0",
        "7",
        "\u{feff}",
        "Content-Length:",
        "0123456789",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn validity_is_that_of_serde_json(bytes in jsonish()) {
        if let Some(expected) = passes_serde_json(&bytes) {
            prop_assert_eq!(passes(&bytes), expected);
        }
    }

    #[test]
    fn validity_of_damaged_text_is_that_of_serde_json(bytes in damaged_json()) {
        if let Some(expected) = passes_serde_json(&bytes) {
            prop_assert_eq!(passes(&bytes), expected);
        }
    }

    #[test]
    fn parameters_come_through_unchanged(value in json(), id in any::<i64>()) {
        let params = serde_json::json!({"value": value, "é\n": 1});
        let mut out = Vec::new();
        write_request(&mut out, &id.into(), "a/b", &params).unwrap();

        prop_assert!(!out.contains(&b'\n'));
        let Ok(Incoming::One(Message::Request(request))) = parse(&out) else {
            return Err(TestCaseError::fail("not a request"));
        };
        prop_assert_eq!(&request.id, &id.into());
        prop_assert_eq!(request.params.get("é\n"), Some("1"));
        prop_assert_eq!(request.params.parse::<Value>().unwrap(), params);
    }

    #[test]
    fn members_are_those_of_serde_json(value in json()) {
        let text = value.to_string();
        let object = RawObject::parse(&text);

        prop_assert_eq!(object.is_ok(), value.is_object());
        if let (Ok(object), Value::Object(expected)) = (object, value) {
            prop_assert_eq!(object.members().count(), expected.len());
            for (name, member) in &expected {
                let found = object.get(name).map(|json| serde_json::from_str::<Value>(json).unwrap());
                prop_assert_eq!(found.as_ref(), Some(member));
            }
        }
    }

    #[test]
    fn every_prefix_of_a_message_is_rejected_as_invalid_json(value in json()) {
        let text = serde_json::json!({"jsonrpc": "2.0", "id": "é", "method": "a", "params": {"v": value}}).to_string();
        for end in 0..text.len() {
            let code = parse(&text.as_bytes()[..end]).map_err(|malformed| malformed.error.code);
            prop_assert_eq!(code.err(), Some(code::PARSE_ERROR));
        }
    }

    #[test]
    fn ids_are_compared_as_their_values_are(digits in "-?(0|[1-9][0-9]{0,3})", zeros in 0_usize..4, text in any::<String>()) {
        let plain = RequestId::from_json(&digits).unwrap();
        let fraction = RequestId::from_json(&format!("{digits}.{}", "0".repeat(zeros + 1))).unwrap();
        let power = RequestId::from_json(&format!("{digits}{}e-{zeros}", "0".repeat(zeros)));

        prop_assert_eq!(&plain, &fraction);
        if digits.trim_start_matches('-') != "0" {
            prop_assert_eq!(&plain, &power.unwrap());
        }
        let quoted = RequestId::from(text.as_str());
        prop_assert_eq!(RequestId::from_json(&quoted.raw()).unwrap(), quoted);
    }

    #[test]
    fn strings_are_read_as_by_serde_json(text in any::<String>()) {
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let json = format!(r#"{{"plain":{},"escaped":"{escaped}"}}"#, Value::from(text.as_str()));
        let params = Params::from_json(&json).unwrap();

        let plain = params.string("plain").unwrap().unwrap();
        let escaped = params.string("escaped").unwrap().unwrap();
        prop_assert_eq!(plain.as_ref(), text.as_str());
        prop_assert_eq!(escaped.as_ref(), text.as_str());
    }

    #[test]
    fn lines_do_not_depend_on_chunks(bytes in stream(), at in any::<prop::sample::Index>()) {
        let (one, other) = bytes.split_at(at.index(bytes.len() + 1));
        let whole = read_lines(&[&bytes]);

        prop_assert_eq!(&read_lines(&[one, other]), &whole);
        prop_assert_eq!(&read_lines(&bytes.chunks(1).collect::<Vec<_>>()), &whole);
    }

    #[test]
    fn events_do_not_depend_on_chunks(bytes in stream(), at in any::<prop::sample::Index>()) {
        let (one, other) = bytes.split_at(at.index(bytes.len() + 1));
        let whole = read_events(&[&bytes]);

        prop_assert_eq!(&read_events(&[one, other]), &whole);
        prop_assert_eq!(&read_events(&bytes.chunks(1).collect::<Vec<_>>()), &whole);
    }

    #[test]
    fn an_event_written_is_read_back(data in "[a \u{feff}é:\r\n]{0,30}", id in "[a-z0-9]{1,8}") {
        let mut out = Vec::new();
        SseEvent::message(data.as_bytes()).with_id(&id).write(&mut out);

        let event = SseDecoder::new(SseLimits::default()).next(&mut out.as_slice()).unwrap().unwrap();

        prop_assert_eq!(event.data, data.replace("\r\n", "\n").replace('\r', "\n"));
        prop_assert_eq!(event.last_event_id, id);
    }

    #[test]
    fn header_values_come_through_unchanged(text in any::<String>()) {
        let value = encode(&text);

        prop_assert!(value.bytes().all(|byte| matches!(byte, 0x20..=0x7e)));
        let decoded = decode(&value).unwrap();
        prop_assert_eq!(decoded.as_ref(), text.as_str());
        let argument = Value::from(text.as_str()).to_string();
        let header = encode_argument(&argument).unwrap();
        prop_assert_eq!(check_argument(header.as_deref(), Some(&argument)), Ok(()));
    }

    #[test]
    fn any_header_is_parsed_or_rejected(header in any::<String>(), argument in any::<String>()) {
        let _ = (decode(&header), parse_accept(&header), parse_content_type(&header));
        let _ = (check_argument(Some(&header), Some(&argument)), encode_argument(&argument));
    }
}
