//! Requests and notifications.

use super::*;

#[test]
fn a_request_borrows_from_its_bytes() {
    let request =
        request(r#" {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}} "#);

    assert_eq!(request.id, RequestId::from(1));
    assert!(matches!(
        request.method,
        std::borrow::Cow::Borrowed("tools/call")
    ));
    assert_eq!(request.params.raw(), r#"{"name":"a"}"#);
}

#[test]
fn a_message_without_id_is_a_notification() {
    let message = one(r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#);

    let Message::Notification(notification) = message else {
        panic!("{message:?}");
    };
    assert_eq!(notification.method, "notifications/initialized");
    assert!(notification.params.is_absent());
}

#[test]
fn a_null_id_is_an_invalid_request_and_never_a_notification() {
    let json = r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#;

    assert_eq!(rejection(json), (-32600, None));
}

#[test]
fn jsonrpc_must_be_the_string_two_point_zero() {
    for version in [r#""1.0""#, "2.0", "2", r#""2""#, "null", r#"["2.0"]"#] {
        let json = format!(r#"{{"jsonrpc":{version},"id":5,"method":"ping"}}"#);
        assert_eq!(rejection(&json), (-32600, Some(5.into())), "{version}");
    }
    assert_eq!(
        rejection(r#"{"id":5,"method":"ping"}"#),
        (-32600, Some(5.into()))
    );
    request(r#"{"jsonrpc":"\u0032.0","id":5,"method":"ping"}"#);
}

#[test]
fn escaped_spellings_are_the_same_string() {
    let request =
        request(r#"{"jsonrpc":"2.0","\u0069d":1,"metho\u0064":"tools\/call","params":{}}"#);

    assert_eq!(request.method, "tools/call");
}

#[test]
fn names_that_differ_by_case_or_folding_are_other_members() {
    for name in ["Method", "METHOD", "method ", "mеthod"] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"{name}":"ping"}}"#);
        assert_eq!(rejection(&json), (-32600, Some(1.into())), "{name}");
    }
    let with_long_s = request(r#"{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{"a":1}}"#);
    assert!(with_long_s.params.is_absent());
    let with_dotless_i = one(r#"{"jsonrpc":"2.0","ıd":1,"Id":2,"method":"ping"}"#);
    assert!(matches!(with_dotless_i, Message::Notification(_)));
}

#[test]
fn unknown_members_are_tolerated() {
    let json = r#"{"jsonrpc":"2.0","id":1,"method":"ping","trace":[1,{"id":2}],"trace":null}"#;

    assert_eq!(request(json).id, 1.into());
}

#[test]
fn a_duplicate_member_is_rejected_with_the_id_unless_that_is_ambiguous() {
    let id = |json: &str| rejection(json);

    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"a"}"#),
        (-32600, Some(1.into()))
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#),
        (-32600, Some(1.into()))
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#),
        (-32600, Some(1.into()))
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#),
        (-32600, Some(1.into()))
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#),
        (-32600, None)
    );
    assert_eq!(
        id(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a","method":"a"}"#),
        (-32600, None)
    );
}

#[test]
fn a_method_must_be_a_string() {
    for method in ["1", "null", r#"["ping"]"#, "{}", "true"] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":"x","method":{method}}}"#);
        assert_eq!(rejection(&json), (-32600, Some("x".into())), "{method}");
    }
}

#[test]
fn params_of_a_request_must_be_an_object() {
    for (params, code) in [
        ("[]", -32602),
        (r#"["a"]"#, -32602),
        ("null", -32600),
        ("1", -32600),
        (r#""{}""#, -32600),
        ("true", -32600),
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#);
        assert_eq!(rejection(&json), (code, Some(1.into())), "{params}");
    }
}

#[test]
fn null_params_of_a_notification_are_absent() {
    let message = one(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#);

    assert!(matches!(message, Message::Notification(n) if n.params.is_absent()));
    assert_eq!(
        rejection(r#"{"jsonrpc":"2.0","method":"a","params":[]}"#),
        (-32602, None)
    );
}

#[test]
fn a_call_that_is_also_a_response_is_rejected() {
    for extra in [r#""result":{}"#, r#""error":{"code":1,"message":""}"#] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{extra}}}"#);
        let malformed = malformed(&json);
        assert_eq!(malformed.error.code, -32600);
        assert!(!malformed.is_response());
    }
}

#[test]
fn values_other_than_objects_are_not_messages() {
    for json in ["1", "\"ping\"", "null", "true", " -0.5e3 "] {
        assert_eq!(rejection(json), (-32600, None), "{json}");
    }
    assert_eq!(rejection("{}"), (-32600, None));
    assert_eq!(
        rejection(r#"{"jsonrpc":"2.0","id":3}"#),
        (-32600, Some(3.into()))
    );
}

#[test]
fn invalid_json_takes_precedence_over_invalid_messages() {
    for json in [
        r#"{"jsonrpc":"1.0","id":null,"method":1} x"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"#,
        r#"[{"method":1},]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a"}{"jsonrpc":"2.0","id":1,"method":"a"}"#,
    ] {
        assert_eq!(rejection(json), (-32700, None), "{json}");
    }
}
