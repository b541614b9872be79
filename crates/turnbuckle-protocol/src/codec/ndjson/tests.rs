//! Tests of lines, split at every position.

use super::*;

const LIMIT: usize = 40;

#[derive(Debug, PartialEq)]
enum OwnedLine {
    Message(String),
    TooLong,
    LspHeader,
}

fn owned(line: DecodedLine<'_>) -> OwnedLine {
    match line {
        DecodedLine::Message(line) => OwnedLine::Message(String::from_utf8(line.to_vec()).unwrap()),
        DecodedLine::TooLong => OwnedLine::TooLong,
        DecodedLine::LspHeader => OwnedLine::LspHeader,
    }
}

fn read(chunks: &[&[u8]]) -> Vec<OwnedLine> {
    let mut lines = LineDecoder::new(LIMIT);
    let mut all = Vec::new();
    for chunk in chunks {
        let mut chunk = *chunk;
        while let Some(line) = lines.next(&mut chunk) {
            all.push(owned(line));
        }
        assert!(chunk.is_empty());
        assert!(lines.buffer.len() <= LIMIT + 1);
    }
    all.extend(lines.finish().map(owned));
    assert_eq!(lines.finish(), None);
    all
}

/// Decodes the input whole, byte by byte, and split in two at every position; all results must be equal.
fn read_with_all_splits(input: &[u8]) -> Vec<OwnedLine> {
    let whole = read(&[input]);
    let bytes: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(read(&bytes), whole, "byte by byte");
    for at in 0..=input.len() {
        let (one, other) = input.split_at(at);
        assert_eq!(read(&[one, b"", other]), whole, "cut at {at}");
    }
    whole
}

fn message(text: &str) -> OwnedLine {
    OwnedLine::Message(text.to_owned())
}

#[test]
fn lines_end_with_either_line_end() {
    let lines = read_with_all_splits(b"{\"a\":1}\n[2]\r\n\"\xc3\xa9\"\n");

    assert_eq!(
        lines,
        [message("{\"a\":1}"), message("[2]"), message("\"é\"")]
    );
}

#[test]
fn blank_lines_are_skipped() {
    assert_eq!(
        read_with_all_splits(b"\n\r\n  \n\t\r\n1\n\n"),
        [message("1")]
    );
    assert_eq!(read_with_all_splits(b""), []);
}

#[test]
fn an_unfinished_last_line_is_a_line() {
    assert_eq!(read_with_all_splits(b"1\n2"), [message("1"), message("2")]);
    assert_eq!(read_with_all_splits(b"2\r"), [message("2")]);
    assert_eq!(read_with_all_splits(b"1\n "), [message("1")]);
}

#[test]
fn a_carriage_return_inside_a_line_stays() {
    assert_eq!(read_with_all_splits(b"1\r2\r\r\n"), [message("1\r2\r")]);
}

#[test]
fn a_line_at_the_limit_passes_and_one_beyond_is_reported_once() {
    let exact = "x".repeat(LIMIT);
    for (input, expected) in [
        (format!("{exact}\n1\n"), vec![message(&exact), message("1")]),
        (
            format!("{exact}\r\n1\n"),
            vec![message(&exact), message("1")],
        ),
        (exact.clone(), vec![message(&exact)]),
        (
            format!("{exact}x\n1\n"),
            vec![OwnedLine::TooLong, message("1")],
        ),
        (
            format!("{exact}x\r\n1\n"),
            vec![OwnedLine::TooLong, message("1")],
        ),
        (
            format!("{exact}\r\r\n1"),
            vec![OwnedLine::TooLong, message("1")],
        ),
        (
            format!("1\n{}", "x".repeat(500)),
            vec![message("1"), OwnedLine::TooLong],
        ),
    ] {
        assert_eq!(
            read_with_all_splits(input.as_bytes()),
            expected,
            "{input:?}"
        );
    }
}

#[test]
fn an_endless_line_is_reported_early_and_needs_no_memory() {
    let mut lines = LineDecoder::new(LIMIT);
    let mut reports = 0;
    for _ in 0..10_000 {
        let mut chunk = &[b'x'; 1000][..];
        while let Some(line) = lines.next(&mut chunk) {
            assert_eq!(line, DecodedLine::TooLong);
            reports += 1;
        }
    }

    assert_eq!(reports, 1);
    assert!(lines.buffer.capacity() <= 2 * LIMIT);
}

#[test]
fn memory_of_a_long_line_is_released() {
    let mut lines = LineDecoder::new(1 << 20);
    let long = vec![b'x'; 1 << 20];
    let mut chunk = &long[..];
    assert_eq!(lines.next(&mut chunk), None);
    let mut chunk = &b"\n1\n"[..];
    assert!(
        matches!(lines.next(&mut chunk), Some(DecodedLine::Message(line)) if line.len() == 1 << 20)
    );
    assert_eq!(lines.next(&mut chunk), Some(DecodedLine::Message(b"1")));

    assert!(lines.buffer.capacity() <= MAX_RETAINED_BYTES);
}

#[test]
fn the_framing_of_language_servers_is_recognized() {
    let lines = read_with_all_splits(
        b"Content-Length: 2\r\n\r\n{}\ncontent-length:7\n Content-Length: 1\n",
    );

    assert_eq!(
        lines,
        [
            OwnedLine::LspHeader,
            message("{}"),
            OwnedLine::LspHeader,
            message(" Content-Length: 1")
        ]
    );
}

#[test]
fn a_line_within_a_chunk_is_not_copied() {
    let input = b"first\nsecond\n".to_vec();
    let mut lines = LineDecoder::new(LIMIT);
    let mut chunk = &input[..];

    let Some(DecodedLine::Message(line)) = lines.next(&mut chunk) else {
        panic!("no line");
    };

    assert!(std::ptr::eq(line.as_ptr(), input.as_ptr()));
}
