//! A stream reads the same however it is cut, within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::codec::sse::{Decoder, Limits, Received, TooLarge};

const LIMITS: Limits = Limits {
    line: 64,
    event: 96,
};

fuzz_target!(|input: (Vec<u8>, usize)| {
    let (bytes, size) = input;
    let whole = read(bytes.chunks(bytes.len().max(1)));

    assert_eq!(read(bytes.chunks(1)), whole);
    assert_eq!(read(bytes.chunks(size % 32 + 1)), whole);
});

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Received, TooLarge>> {
    let mut decoder = Decoder::new(LIMITS);
    let mut events = Vec::new();
    for mut chunk in chunks {
        while let Some(event) = decoder.next(&mut chunk).transpose() {
            events.push(event);
        }
    }
    events
}
