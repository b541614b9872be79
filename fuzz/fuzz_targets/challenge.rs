//! Any `WWW-Authenticate` header is parsed or rejected, and a parsed challenge can be written and parsed again. Any text can be
//! part of a challenge, without header injection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_auth::{Challenge, Scopes};

fuzz_target!(|input: &str| {
    if let Ok(challenges) = Challenge::parse(input) {
        for challenge in challenges {
            assert_reads_back(&challenge);
        }
    }
    let mut lines = input.lines();
    let mut line = || lines.next().unwrap_or_default();
    let mut challenge = Challenge::bearer()
        .resource_metadata(line())
        .error(line(), line());
    if let Ok(scopes) = line().parse::<Scopes>() {
        challenge = challenge.scope(&scopes);
        let said = challenge.parameter("scope").unwrap_or_default();
        assert_eq!(said.parse(), Ok(scopes), "scopes are said as they are");
    }
    // The rest may contain line breaks of every kind.
    challenge = challenge.with_parameter("rest", input);
    let header = challenge.to_string();
    let is_header = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    assert!(header.bytes().all(is_header), "{header:?}");
    assert_reads_back(&challenge);
});

fn assert_reads_back(challenge: &Challenge) {
    let header = challenge.to_string();
    if header.len() <= Challenge::MAX_HEADER_BYTES {
        let read = Challenge::parse(&header).expect("what we write can be read");
        assert_eq!(read, std::slice::from_ref(challenge), "{header:?}");
    }
}
