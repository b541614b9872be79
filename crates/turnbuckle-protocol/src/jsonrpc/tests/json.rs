//! Valid and invalid JSON.

use super::*;

/// Places a value where only the scanner reads it.
fn code_inside_params(value: &[u8]) -> i64 {
    let mut json = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"#.to_vec();
    json.extend_from_slice(value);
    json.extend_from_slice(b"}}");
    match parse(&json) {
        Ok(_) => 0,
        Err(malformed) => malformed.error.code,
    }
}

fn arrays(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn depth_is_limited_over_the_whole_message() {
    assert_eq!(code_inside_params(arrays(126).as_bytes()), 0);
    assert_eq!(code_inside_params(arrays(127).as_bytes()), -32700);
    assert_eq!(rejection(arrays(129)), (-32700, None));
    assert_eq!(rejection("[".repeat(20_000)), (-32700, None));
    assert_eq!(rejection(r#"{"a":"#.repeat(1_000_000)), (-32700, None));
    // A batch adds one level.
    assert!(matches!(
        parse(arrays(128).as_bytes()),
        Ok(Incoming::Batch(_))
    ));
    let objects = format!("[{}1{}]", r#"{"a":"#.repeat(127), "}".repeat(127));
    assert!(matches!(parse(objects.as_bytes()), Ok(Incoming::Batch(_))));
    assert_eq!(rejection(format!("[{objects}]")), (-32700, None));
}

#[test]
fn json_within_the_depth_limit_can_be_parsed_by_serde_json() {
    let json = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{}}}}}"#,
        arrays(126)
    );

    assert!(request(&json).params.parse::<serde_json::Value>().is_ok());
}

#[test]
fn siblings_do_not_count_as_depth() {
    let wide = format!("[{}]", vec![arrays(100); 500].join(","));

    assert_eq!(code_inside_params(wide.as_bytes()), 0);
}

#[test]
fn valid_values_are_accepted() {
    for value in [
        "0",
        "-0",
        "10",
        "0.5",
        "1E5",
        "1e+5",
        "-1.25e-9",
        "true",
        "false",
        "null",
        r#""""#,
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1 , 2\t,\r\n3]",
        r#"{"a" : {"b":[{}]} , "c":[]}"#,
        r#""\"\\\/\b\f\n\r\t\u00Ff""#,
        r#""\uD834\udd1e""#,
        "\"\u{7f}\u{2028}é😀\"",
    ] {
        assert_eq!(code_inside_params(value.as_bytes()), 0, "{value}");
    }
}

#[test]
fn invalid_values_are_rejected() {
    for value in [
        "",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "-Infinity",
        "tru",
        "True",
        "nul",
        "'a'",
        r#"""#,
        r#""\a""#,
        r#""\u12""#,
        r#""\u12G4""#,
        r#""\u+123""#,
        "\"\t\"",
        "\"\n\"",
        "\"\0\"",
        "\"\u{1f}\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        "]",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{,}"#,
        "{1:1}",
        "{a:1}",
        r#"{"a":1 "b":2}"#,
        r#"{"a" 1}"#,
        "[1}",
        r#"{"a":1]"#,
        "1 1",
        "/**/1",
        "\u{a0}1",
        "\u{feff}1",
        "1\u{c}",
    ] {
        assert_eq!(code_inside_params(value.as_bytes()), -32700, "{value:?}");
    }
}

#[test]
fn lone_surrogates_are_rejected_at_any_position() {
    for value in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\u0061""#,
        r#""\ud800\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ud800\"#,
        r#""\uD83D\uDE00\uD83D""#,
        r#"{"\udfff":1}"#,
    ] {
        assert_eq!(code_inside_params(value.as_bytes()), -32700, "{value}");
    }
    assert_eq!(
        rejection(r#"{"jsonrpc":"2.0","id":"\ud800","method":"a"}"#),
        (-32700, None)
    );
    assert_eq!(
        rejection(r#"{"jsonrpc":"2.0","id":1,"method":"\udc00"}"#),
        (-32700, None)
    );
}

#[test]
fn invalid_utf8_is_rejected() {
    for bytes in [
        &b"\"\xff\xfe\""[..],
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\x80\"",
        b"\"\xe9\"",
        b"\xff",
    ] {
        assert_eq!(code_inside_params(bytes), -32700, "{bytes:?}");
    }
}

#[test]
fn empty_input_and_byte_order_marks_are_rejected() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    assert_eq!(rejection(""), (-32700, None));
    assert_eq!(rejection(" \r\n\t"), (-32700, None));
    assert_eq!(rejection(format!("\u{feff}{ping}")), (-32700, None));
    assert_eq!(rejection(format!("\0{ping}")), (-32700, None));
    assert_eq!(rejection(format!("{ping}\0")), (-32700, None));
    assert_eq!(rejection("Content-Length: 40"), (-32700, None));
}

#[test]
fn a_special_byte_is_found_at_every_position_of_a_word() {
    for length in 0..40 {
        for at in 0..length {
            for (special, code) in [
                ("\u{1f}", -32700),
                ("\\n", 0),
                ("\\x", -32700),
                ("é", 0),
                ("\u{7f}", 0),
                ("\"", -32700),
            ] {
                let text = format!("\"{}{special}{}\"", "a".repeat(at), "é".repeat(length - at));
                assert_eq!(code_inside_params(text.as_bytes()), code, "{text}");
            }
        }
    }
}

#[test]
fn a_prefix_of_a_message_is_not_a_message() {
    let json = r#"{"jsonrpc":"2.0","id":"\u00e9é","method":"tools\/call","params":{"a":[1.5e3,true,null],"_meta":{}}}"#;

    for end in 0..json.len() {
        assert_eq!(rejection(&json.as_bytes()[..end]), (-32700, None), "{end}");
    }
    request(json);
}
