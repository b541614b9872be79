//! A stream is decoded the same however it is split, within its limits; an encoded event is decoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::codec::sse::{
    EventTooLarge, ParsedEvent, SseDecoder, SseEvent, SseLimits,
};

const LIMITS: SseLimits = SseLimits {
    line: 64,
    event: 96,
};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(LIMITS, bytes.chunks(bytes.len().max(1)));

    assert_eq!(read(LIMITS, bytes.chunks(1)), whole);
    assert_eq!(read(LIMITS, bytes.chunks(bytes.len() % 31 + 1)), whole);
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_round_trip(text);
    }
});

fn read<'a>(
    limits: SseLimits,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> Vec<Result<ParsedEvent, EventTooLarge>> {
    let mut decoder = SseDecoder::new(limits);
    let mut events = Vec::new();
    for mut chunk in chunks {
        while let Some(event) = decoder.next(&mut chunk).transpose() {
            events.push(event);
        }
    }
    events
}

/// An event carries any text, up to the kind of its line ends.
fn assert_round_trip(text: &str) {
    let mut written = Vec::new();
    let event = SseEvent::message(text.as_bytes())
        .with_id(text)
        .with_name(text);
    event.write(&mut written);

    let events = read(SseLimits::default(), written.chunks(written.len()));

    let [Ok(event)] = &events[..] else {
        panic!("one event was written, and read was {events:?}");
    };
    assert_eq!(event.data, text.replace("\r\n", "\n").replace('\r', "\n"));
    assert_eq!(event.last_event_id, text.replace(['\r', '\n', '\0'], ""));
}
