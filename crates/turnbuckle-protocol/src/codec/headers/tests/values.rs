//! Plain and encoded values.

use crate::codec::headers::{InvalidHeaderValue, decode, encode};

#[test]
fn values_are_written_plain_or_encoded() {
    for (text, value) in [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("", ""),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        (" left", "=?base64?IGxlZnQ=?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\tb", "=?base64?YQli?="),
        ("\u{7f}", "=?base64?fw==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("close?=", "close?="),
        ("=?BASE64?x?=", "=?BASE64?x?="),
    ] {
        assert_eq!(encode(text), value, "{text:?}");
        assert_eq!(decode(value).unwrap(), text, "{text:?}");
    }
}

#[test]
fn optional_whitespace_is_trimmed() {
    assert_eq!(decode(" \t a b\t ").unwrap(), "a b");
    assert_eq!(decode(" =?base64?IGE=?= ").unwrap(), " a");
    assert_eq!(decode("  ").unwrap(), "");
}

#[test]
fn text_that_resembles_the_markers_is_literal() {
    for value in [
        "=?Base64?YQ==?=",
        "=?base64?YQ==",
        "=?base64?YQ==?",
        "?base64?YQ==?=",
        "x=?base64?YQ==?=",
        "=?base64?=",
    ] {
        assert_eq!(decode(value).unwrap(), value);
    }
}

#[test]
fn only_canonical_base64_is_accepted() {
    assert_eq!(decode("=?base64??=").unwrap(), "");
    assert_eq!(decode("=?base64?YQ==?=").unwrap(), "a");
    for inner in [
        "YQ",
        "YQ=",
        "YQ===",
        "YR==",
        "Y Q==",
        "YQ==\t",
        "YQ==YQ==",
        "_-__",
        "=",
        "!!!!",
        "YWE",
        "YWF=",
        "é",
        "?=",
        "=?base64?YQ==?=",
    ] {
        let value = format!("=?base64?{inner}?=");
        assert_eq!(decode(&value), Err(InvalidHeaderValue::Base64), "{inner:?}");
    }
}

#[test]
fn encoded_text_must_be_utf8() {
    assert_eq!(decode("=?base64?//4=?="), Err(InvalidHeaderValue::Utf8));
    assert_eq!(decode("=?base64?7aCA?="), Err(InvalidHeaderValue::Utf8));
}

#[test]
fn a_plain_value_is_visible_ascii() {
    for value in ["é", "a\nb", "a\r\nX: y", "a\0", "\u{7f}", "\u{a0}a"] {
        assert_eq!(
            decode(value),
            Err(InvalidHeaderValue::Character),
            "{value:?}"
        );
    }
    assert_eq!(decode("a\tb").unwrap(), "a\tb");
}
