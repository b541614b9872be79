//! Every case of JSONTestSuite: as a message, as a parameter, and truncated.

use std::fs;

use turnbuckle_protocol::jsonrpc::{Incoming, parse};

use crate::data;

/// Returns `(file name, bytes)` of every case, or nothing if the data is missing.
fn cases() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = data::folder("corpora/json") else {
        return Vec::new();
    };
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let cases: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    assert_eq!(cases.len(), 318);
    cases
}

/// Returns the error code for the bytes as a message; an array is rejected entry by entry.
fn code_alone(bytes: &[u8]) -> i64 {
    match parse(bytes) {
        Err(malformed) => malformed.error.code,
        Ok(Incoming::Batch(entries)) => {
            let codes = entries
                .into_iter()
                .map(|entry| entry.unwrap_err().error.code);
            codes
                .reduce(|one, other| if one == other { one } else { 0 })
                .unwrap()
        }
        Ok(Incoming::One(message)) => panic!("not a message: {message:?}"),
    }
}

/// Returns the error code for the bytes inside the parameters of a request, or 0 if they are accepted.
fn code_inside(bytes: &[u8]) -> i64 {
    let head = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"#;
    match parse(&[head, bytes, b"}}"].concat()) {
        Ok(_) => 0,
        Err(malformed) => malformed.error.code,
    }
}

#[test]
fn cases_that_must_be_accepted_are_json_but_not_messages() {
    for (name, bytes) in cases().iter().filter(|(name, _)| name.starts_with("y_")) {
        assert_eq!(code_alone(bytes), -32600, "{name}");
        assert_eq!(code_inside(bytes), 0, "{name}");
    }
}

#[test]
fn cases_that_must_be_rejected_are_not_json() {
    for (name, bytes) in cases().iter().filter(|(name, _)| name.starts_with("n_")) {
        assert_eq!(code_alone(bytes), -32700, "{name}");
        assert_eq!(code_inside(bytes), -32700, "{name}");
    }
}

#[test]
fn optional_cases_get_one_of_the_two_results() {
    for (name, bytes) in cases().iter().filter(|(name, _)| name.starts_with("i_")) {
        assert!(matches!(code_alone(bytes), -32600 | -32700), "{name}");
    }
}

#[test]
fn truncated_cases_get_an_expected_code() {
    for (name, bytes) in cases().iter().filter(|(_, bytes)| bytes.len() < 2000) {
        for end in 0..bytes.len() {
            assert!(
                matches!(code_alone(&bytes[..end]), -32600 | -32700),
                "{name} {end}"
            );
        }
    }
}
