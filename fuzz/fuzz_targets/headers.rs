//! Any text survives a round trip through a header; any header value is parsed or rejected.
//!
//! The last line is an argument, the lines before it are a text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::codec::headers::{
    check_argument, decode, encode, encode_argument, param_headers, parse_accept,
    parse_content_type,
};

fuzz_target!(|input: &str| {
    let (text, argument) = input.rsplit_once('\n').unwrap_or((input, "null"));
    let encoded = encode(text);
    assert!(
        encoded
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~' | b'\t')),
        "{encoded:?}"
    );
    assert_eq!(decode(&encoded).expect("what we encode decodes"), text);

    let _ = (decode(text), parse_accept(text), parse_content_type(text));
    let _ = check_argument(Some(text), Some(argument));
    if let Ok(Some(header)) = encode_argument(argument) {
        assert_eq!(check_argument(Some(&header), Some(argument)), Ok(()));
    }
    if let Ok(schema) = serde_json::from_str(argument) {
        let _ = param_headers(&schema);
    }
});
