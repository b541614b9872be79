//! Tests of events as in the HTML standard, split at every position.

use std::time::Duration;

use super::*;

const LIMITS: SseLimits = SseLimits {
    line: 5000,
    event: 9000,
};

#[derive(Debug, Default, PartialEq)]
struct Stream {
    /// Type, data and last id of each event.
    events: Vec<(String, String, String)>,
    last_event_id: String,
    retry: Option<Duration>,
    errors: usize,
}

fn read(chunks: &[&[u8]], limits: SseLimits) -> Stream {
    let mut decoder = SseDecoder::new(limits);
    let mut stream = Stream::default();
    for chunk in chunks {
        let mut chunk = *chunk;
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(event)) => {
                    let ParsedEvent {
                        name,
                        data,
                        last_event_id,
                    } = event;
                    stream.events.push((name, data, last_event_id));
                }
                Ok(None) => break,
                Err(EventTooLarge) => stream.errors += 1,
            }
        }
        assert!(chunk.is_empty());
    }
    stream.last_event_id = decoder.last_event_id().to_owned();
    stream.retry = decoder.retry();
    stream
}

/// Decodes the input whole, byte by byte, and split in two at every position; all results must be equal.
fn read_with_all_splits(input: &[u8], limits: SseLimits) -> Stream {
    let whole = read(&[input], limits);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(read(&bytes, limits), whole, "byte by byte");
    for at in 0..=input.len() {
        let (one, other) = input.split_at(at);
        assert_eq!(read(&[one, b"", other], limits), whole, "cut at {at}");
    }
    whole
}

fn messages(input: impl AsRef<[u8]>) -> Vec<String> {
    let events = read_with_all_splits(input.as_ref(), LIMITS).events;
    events.into_iter().map(|(_, data, _)| data).collect()
}

#[test]
fn data_is_decoded_as_in_the_standard() {
    let long = "x".repeat(2 * 1024);
    let commented =
        format!("data:1\r:\0\n:\r\ndata:2\n:{long}\rdata:3\n:data:fail\r:{long}\ndata:4\n\n");
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "byte order mark",
            "\u{feff}data:1\n\n\u{feff}data:2\n\ndata:3\n\n",
            &["1", "3"],
        ),
        (
            "only one mark is removed",
            "\u{feff}\u{feff}data:1\n\ndata:2\n\n",
            &["2"],
        ),
        ("mark before a blank line", "\u{feff}\ndata:1\n\n", &["1"]),
        ("comments", &commented, &["1\n2\n3\n4"]),
        ("unfinished event", "data:1\n\ndata:2", &["1"]),
        ("event without its blank line", "data:1\n\ndata:2\n", &["1"]),
        (
            "data with and without colon",
            "data:\n\ndata\ndata\n\ndata:test\n\n",
            &["", "\n", "test"],
        ),
        (
            "field names are exact",
            "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
            &["\0\n 2\n1\n3\n\n4"],
        ),
        (
            "unknown fields",
            "data:test\n data\ndata\nfoobar:xxx\njusttext\n:comment\ndata:test\n\n",
            &["test\n\ntest"],
        ),
        (
            "one leading space is removed",
            "data:\ttest\rdata: \ndata:test\n\n",
            &["\ttest\n\ntest"],
        ),
        ("two leading spaces", "data:  a\n\n", &[" a"]),
        (
            "every line end",
            "data:test\r\ndata\ndata:test\r\n\r",
            &["test\n\ntest"],
        ),
        (
            "carriage returns alone",
            "data:1\r\rdata:2\r\r",
            &["1", "2"],
        ),
        (
            "line feed then carriage return",
            "data:1\n\rdata:2\n\r",
            &["1", "2"],
        ),
        (
            "two line ends of two bytes",
            "data:1\r\n\r\ndata:2\r\n\r\n",
            &["1", "2"],
        ),
        ("null character", "data:\0\n\n\n\n", &["\0"]),
        ("multi-byte text", "data:ok…😀\n\n", &["ok…😀"]),
        ("blank lines are not events", "\n\r\r\n\n", &[]),
        (
            "an event without data",
            "event:x\nid:1\n\ndata:y\n\n",
            &["y"],
        ),
        ("a colon in the value", "data:a:b\n\n", &["a:b"]),
        ("only a colon", ":\n\ndata:1\n\n", &["1"]),
        (
            "json",
            "event: message\ndata: {\"id\":1}\n\n",
            &["{\"id\":1}"],
        ),
    ];
    for (name, input, expected) in cases {
        assert_eq!(messages(input), *expected, "{name}");
    }
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(
        messages(b"data:\xff\xe2\x80\ndata:\xe2\x80\xa6\n\n"),
        ["\u{fffd}\u{fffd}\n…"]
    );
}

#[test]
fn the_event_type_applies_to_one_event() {
    let stream = read_with_all_splits(
        b"event:test\ndata:x\n\ndata:x\n\nevent: \ndata:y\n\nevent:z\n\ndata:w\n\n",
        LIMITS,
    );

    let names: Vec<_> = stream
        .events
        .iter()
        .map(|(name, ..)| name.as_str())
        .collect();
    assert_eq!(names, ["test", "message", "message", "message"]);
}

#[test]
fn an_id_applies_until_the_next() {
    let stream = read_with_all_splits(
        "id: …\ndata:1\n\ndata:2\n\nid:3\n\ndata:4\n\nid\ndata:5\n\nid:6\ndata:7".as_bytes(),
        LIMITS,
    );

    let ids: Vec<_> = stream.events.iter().map(|(.., id)| id.as_str()).collect();
    assert_eq!(ids, ["…", "…", "3", ""]);
    assert_eq!(
        stream.last_event_id, "",
        "the last event was never finished"
    );
}

#[test]
fn an_id_with_a_null_character_is_ignored() {
    for input in ["id:1\nid:a\0b\ndata:x\n\n", "id:1\nid:\0\ndata:x\n\n"] {
        assert_eq!(
            read_with_all_splits(input.as_bytes(), LIMITS).last_event_id,
            "1"
        );
    }
}

#[test]
fn retry_takes_digits_only() {
    let retry = |input: &str| {
        read_with_all_splits(input.as_bytes(), LIMITS)
            .retry
            .map(|it| it.as_millis())
    };

    assert_eq!(retry("retry:3000\ndata:x\n\n"), Some(3000));
    assert_eq!(retry("retry: 3000"), None, "its line never ended");
    assert_eq!(retry("retry: 3000\n"), Some(3000));
    assert_eq!(
        retry("retry:3000\nretry:1000x\nretry:-1\nretry:1.5\nretry:+1\nretry:  1\n\n"),
        Some(3000)
    );
    assert_eq!(retry("retry\nretry:\nRetry:1\n\n"), None);
    assert_eq!(retry("retry:0\n\n"), Some(0));
    assert_eq!(
        retry("retry:99999999999999999999999\n\n"),
        Some(u128::from(u64::MAX))
    );
}

#[test]
fn an_oversized_event_is_skipped_and_the_rest_is_decoded() {
    let limits = SseLimits {
        line: 20,
        event: 12,
    };
    for (input, events, errors) in [
        (
            "data:123456789012\n\ndata:b\n\n",
            &["123456789012", "b"][..],
            0,
        ),
        ("data:1234567890123\n\ndata:b\n\n", &["b"], 1),
        ("data:123456\ndata:123456\ndata:1\n\ndata:b\n\n", &["b"], 1),
        (
            "data:a\ndata:123456789012345678901\ndata:c\n\ndata:b\n\n",
            &["b"],
            1,
        ),
        (":12345678901234567890\ndata:a\n\ndata:b\n\n", &["b"], 1),
        (
            "data:1234567890123\ndata:1234567890123\n\ndata:1234567890123\n\ndata:b\n\n",
            &["b"],
            2,
        ),
        ("id:1234567890123456789\ndata:a\n\ndata:b\n\n", &["b"], 1),
        (
            "data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n\ndata:b\n\n",
            &["b"],
            1,
        ),
    ] {
        let stream = read_with_all_splits(input.as_bytes(), limits);
        let data: Vec<_> = stream
            .events
            .iter()
            .map(|(_, data, _)| data.as_str())
            .collect();
        assert_eq!(
            (data.as_slice(), stream.errors),
            (events, errors),
            "{input:?}"
        );
    }
}

#[test]
fn an_event_is_written_field_by_field() {
    let mut out = Vec::new();

    SseEvent::message(b"{\"a\":1}")
        .with_name("message")
        .with_id("s1/7")
        .with_retry(500)
        .write(&mut out);
    SseEvent::default().with_retry(1).write(&mut out);
    SseEvent::message(b"").with_id("0").write(&mut out);
    write_comment(&mut out, "");
    write_comment(&mut out, "still here");

    let expected = "event: message\nid: s1/7\nretry: 500\ndata: {\"a\":1}\n\nretry: 1\n\nid: 0\ndata: \n\n: \n\n: still here\n\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_one_line_event_is_allocated_exactly() {
    for event in [
        SseEvent::message(b"{}"),
        SseEvent::message(b"{}").with_id("12-345"),
        SseEvent::message(b"")
            .with_name("endpoint")
            .with_retry(1000),
        SseEvent::default(),
    ] {
        let mut out = Vec::new();
        event.write(&mut out);

        assert_eq!(out.capacity().max(8), out.len().max(8), "{event:?}");
    }
}

#[test]
fn line_ends_in_data_make_several_lines() {
    for (data, read_back) in [
        ("a\nb", "a\nb"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("a\n\rb", "a\n\nb"),
        ("\n", "\n"),
        ("\r\n\r\n", "\n\n"),
        ("a\n", "a\n"),
        ("", ""),
        (" a", " a"),
        ("data: x", "data: x"),
        ("\u{feff}a", "\u{feff}a"),
    ] {
        let mut out = Vec::new();
        SseEvent::message(data.as_bytes()).write(&mut out);
        assert_eq!(messages(out), [read_back], "{data:?}");
    }
}

#[test]
fn fields_and_comments_cannot_inject_others() {
    let mut out = Vec::new();
    write_comment(&mut out, "a\ndata: forged\n\ndata: again");
    SseEvent::message(b"x")
        .with_id("1\ndata: forged\0")
        .with_name("n\r\rdata: forged")
        .write(&mut out);

    let stream = read_with_all_splits(&out, LIMITS);

    assert_eq!(
        stream.events,
        [(
            "ndata: forged".to_owned(),
            "x".to_owned(),
            "1data: forged".to_owned()
        )]
    );
}

#[test]
fn an_oversized_id_is_ignored() {
    let limits = SseLimits {
        line: 100_000,
        event: 100_000,
    };
    let longest = "x".repeat(8 * 1024);
    let input = format!("id: {longest}\ndata: 1\n\nid: {longest}x\ndata: 2\n\ndata: 3\n\n");

    let stream = read(&[input.as_bytes()], limits);

    let ids: Vec<_> = stream.events.iter().map(|(_, _, id)| id.len()).collect();
    assert_eq!(ids, [8 * 1024, 0, 0]);
    assert_eq!(stream.last_event_id, "");
}
