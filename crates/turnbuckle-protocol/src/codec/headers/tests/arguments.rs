//! Headers that repeat arguments.

use crate::codec::headers::{
    HeaderMismatch, InvalidHeaderValue, UnencodableArgument, check_argument, encode_argument,
};

fn check(header: &str, argument: &str) -> Result<(), HeaderMismatch> {
    check_argument(Some(header), Some(argument))
}

#[test]
fn strings_are_compared_exactly() {
    assert_eq!(check("us-west1", r#""us-west1""#), Ok(()));
    assert_eq!(check(" us-west1 ", r#""us\u002dwest1""#), Ok(()));
    assert_eq!(check("=?base64?w6k=?=", r#""é""#), Ok(()));
    assert_eq!(check("", r#""""#), Ok(()));
    assert_eq!(
        check("US-WEST1", r#""us-west1""#),
        Err(HeaderMismatch::Different)
    );
    assert_eq!(check("42.0", r#""42""#), Err(HeaderMismatch::Different));
    assert_eq!(
        check("padded", r#"" padded""#),
        Err(HeaderMismatch::Different)
    );
}

#[test]
fn integers_are_compared_as_numbers() {
    for (header, argument) in [
        ("42", "42"),
        ("42.0", "42"),
        ("42", "42.0"),
        ("4.2e1", "42"),
        ("0", "-0"),
        ("-7", "-7"),
        ("=?base64?NDI=?=", "42"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
    ] {
        assert_eq!(check(header, argument), Ok(()), "{header} {argument}");
    }
    for (header, argument) in [
        ("43", "42"),
        ("42.5", "42"),
        ("042", "42"),
        ("+42", "42"),
        ("0x2a", "42"),
        ("", "0"),
        ("42 43", "42"),
        ("\"42\"", "42"),
        ("9007199254740992", "9007199254740991"),
        ("1e999999999999999999999", "1"),
        ("true", "1"),
    ] {
        assert_eq!(
            check(header, argument),
            Err(HeaderMismatch::Different),
            "{header} {argument}"
        );
    }
}

#[test]
fn integers_that_receivers_may_round_are_rejected() {
    for number in [
        "9007199254740992",
        "-9007199254740992",
        "9223372036854775807",
        "1e400",
    ] {
        assert_eq!(check(number, number), Err(HeaderMismatch::OutOfRange));
        assert_eq!(
            encode_argument(number),
            Err(UnencodableArgument::OutOfRange)
        );
    }
}

#[test]
fn booleans_are_words() {
    assert_eq!(check("true", "true"), Ok(()));
    assert_eq!(check("false", " false "), Ok(()));
    assert_eq!(check("True", "true"), Err(HeaderMismatch::Different));
    assert_eq!(check("1", "true"), Err(HeaderMismatch::Different));
    assert_eq!(check("false", "true"), Err(HeaderMismatch::Different));
}

#[test]
fn a_header_is_required_exactly_if_the_argument_is_present() {
    for argument in [r#""""#, "false", "0", r#""a""#] {
        assert_eq!(
            check_argument(None, Some(argument)),
            Err(HeaderMismatch::Missing),
            "{argument}"
        );
    }
    assert_eq!(check_argument(None, None), Ok(()));
    assert_eq!(check_argument(None, Some("null")), Ok(()));
    assert_eq!(
        check_argument(Some(""), None),
        Err(HeaderMismatch::Unexpected)
    );
    assert_eq!(check("null", "null"), Err(HeaderMismatch::Unexpected));
}

#[test]
fn other_types_are_left_to_the_schema() {
    for argument in ["1.5", "[1]", r#"{"a":1}"#] {
        assert_eq!(check_argument(None, Some(argument)), Ok(()), "{argument}");
        assert_eq!(
            check(argument, argument),
            Err(HeaderMismatch::Unexpected),
            "{argument}"
        );
        assert_eq!(
            encode_argument(argument),
            Err(UnencodableArgument::Kind),
            "{argument}"
        );
    }
}

#[test]
fn a_malformed_header_is_reported() {
    assert_eq!(
        check("=?base64?YQ?=", r#""a""#),
        Err(HeaderMismatch::Malformed(InvalidHeaderValue::Base64))
    );
    assert_eq!(
        check("é", r#""é""#),
        Err(HeaderMismatch::Malformed(InvalidHeaderValue::Character))
    );
}

#[test]
fn encoded_arguments_can_be_decoded() {
    for (argument, header) in [
        (r#""a b""#, Some("a b")),
        (r#""""#, Some("")),
        (r#""a\nb""#, Some("=?base64?YQpi?=")),
        (r#""\u0041""#, Some("A")),
        ("42.0", Some("42")),
        ("-0", Some("0")),
        ("1e3", Some("1000")),
        ("true", Some("true")),
        ("null", None),
    ] {
        let written = encode_argument(argument).unwrap();
        assert_eq!(written.as_deref(), header, "{argument}");
        assert_eq!(
            check_argument(written.as_deref(), Some(argument)),
            Ok(()),
            "{argument}"
        );
    }
}
