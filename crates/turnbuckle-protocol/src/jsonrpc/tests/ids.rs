//! Ids: repeated as received, compared by value.

use std::collections::HashSet;

use super::*;

fn id(json: &str) -> RequestId {
    let message = format!(r#"{{"jsonrpc":"2.0","id":{json},"method":"ping"}}"#);
    request(&message).id
}

#[test]
fn ids_are_echoed_in_the_bytes_received() {
    for json in [
        "0",
        "-0",
        "-1",
        "1.0",
        "1e0",
        "10E-1",
        "0.0",
        "-0.0e5",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "123456789012345678901234567890",
        "1e400",
        r#""""#,
        r#""1""#,
        r#""a:b""#,
        r#""\u0061""#,
        r#""\/""#,
        r#""\"\\""#,
        r#""é😀""#,
        r#""\ud83d\ude00""#,
    ] {
        let id = id(json);
        let mut written = Vec::new();
        id.write(&mut written);

        assert_eq!(id.raw(), json);
        assert_eq!(written, json.as_bytes());
        assert_eq!(id.to_string(), json);
        assert_eq!(serde_json::to_string(&id).unwrap(), json);
    }
}

#[test]
fn ids_are_compared_by_value() {
    let same = [
        &["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000E+0"][..],
        &["0", "-0", "0.0", "-0e99999999999999999999"],
        &[
            "9223372036854775807",
            "9223372036854775807.0",
            "922337203685477580.7e1",
        ],
        &[
            "9223372036854775808",
            "9223372036854775808.00",
            "922337203685477580.8e1",
        ],
        &["1e400", "10e399", "0.1e401"],
        &["-1e400"],
        &["1e401"],
        &["-1", "-1.0"],
        &[r#""1""#, r#""\u0031""#],
        &[r#""a/b""#, r#""a\/b""#, r#""\u0061/b""#],
        &[r#""""#],
    ];
    let values: HashSet<RequestId> = same
        .iter()
        .flat_map(|group| group.iter())
        .map(|json| id(json))
        .collect();

    assert_eq!(values.len(), same.len());
    for group in same {
        assert!(
            group.iter().all(|json| id(json) == id(group[0])),
            "{group:?}"
        );
    }
}

#[test]
fn values_other_than_strings_and_integers_are_rejected() {
    for json in [
        "1.5",
        "-0.1",
        "1e-1",
        "1.05e1",
        "null",
        "true",
        "false",
        "{}",
        "[]",
        "[1]",
        "1e99999999999999999999",
        "1e-99999999999999999999",
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{json},"method":"ping"}}"#);
        assert_eq!(rejection(&message), (-32600, None), "{json}");
        assert!(RequestId::from_json(json).is_err(), "{json}");
    }
}

#[test]
fn own_ids_are_written_as_json() {
    assert_eq!(RequestId::from(-7).raw(), "-7");
    assert_eq!(RequestId::from("a\"\n").raw(), r#""a\"\n""#);
    assert_eq!(RequestId::from(String::from("x")).as_str(), Some("x"));
    assert_eq!(RequestId::from(3).as_i64(), Some(3));
}

#[test]
fn ids_deserialize_from_text_and_from_values() {
    let from_text: RequestId = serde_json::from_str(" 1.0 ").unwrap();
    let from_value: RequestId = serde_json::from_value(serde_json::json!("a")).unwrap();

    assert_eq!(
        (from_text.raw(), from_text.as_i64()),
        ("1.0".into(), Some(1))
    );
    assert_eq!(from_value, "a".into());
    for json in ["null", "1.5", "[1]", r#""\ud800""#] {
        assert!(serde_json::from_str::<RequestId>(json).is_err(), "{json}");
    }
}

#[test]
fn the_same_text_as_another_type_is_another_id() {
    let (number, text) = (RequestId::from(7), RequestId::from("7"));

    assert_ne!(number, text);
    assert_eq!(number.of_other_type(), Some(text.clone()));
    assert_eq!(text.of_other_type(), Some(number.clone()));
    assert_eq!((number.type_name(), text.type_name()), ("number", "string"));
    for unrelated in ["", "a", "07", "+7", "7.0", "99999999999999999999"] {
        assert_eq!(
            RequestId::from(unrelated).of_other_type(),
            None,
            "{unrelated}"
        );
    }
}
