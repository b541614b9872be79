//! Lines are the same however the input is split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::codec::ndjson::{DecodedLine, LineDecoder};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes.chunks(bytes.len().max(1)));

    assert_eq!(read(bytes.chunks(1)), whole);
    assert_eq!(read(bytes.chunks(bytes.len() % 31 + 1)), whole);
});

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut lines = LineDecoder::new(32);
    let mut all = Vec::new();
    for mut chunk in chunks {
        while let Some(line) = lines.next(&mut chunk) {
            all.push(owned(line));
        }
    }
    all.extend(lines.finish().map(owned));
    all
}

fn owned(line: DecodedLine<'_>) -> Option<Vec<u8>> {
    match line {
        DecodedLine::Message(line) => Some(line.to_vec()),
        DecodedLine::TooLong | DecodedLine::LspHeader => None,
    }
}
