//! Responses to requests of ours.

use super::*;
use crate::jsonrpc::{Response, RpcError};

fn response(json: &str) -> Response<'_> {
    match one(json) {
        Message::Response(response) => response,
        other => panic!("not a response: {other:?}"),
    }
}

#[test]
fn a_result_stays_raw() {
    let response = response(r#"{"jsonrpc":"2.0","id":"a","result": {"x": [1]} }"#);

    assert_eq!(response.id, "a".into());
    assert_eq!(response.outcome, Ok(r#"{"x": [1]}"#));
}

#[test]
fn an_error_keeps_its_data() {
    let json = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":[]}}}"#;
    let expected = RpcError::new(-32022, "no").with_data(serde_json::json!({"supported": []}));

    assert_eq!(response(json).outcome, Err(expected));
}

#[test]
fn null_data_is_preserved() {
    let json = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":null}}"#;

    let error = response(json).outcome.unwrap_err();

    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        r#"{"code":1,"message":"no","data":null}"#
    );
}

#[test]
fn both_result_and_error_is_an_invalid_response() {
    let json = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#;

    let malformed = malformed(json);

    assert_eq!(
        (malformed.error.code, malformed.id.clone()),
        (-32600, Some(1.into()))
    );
    assert!(malformed.is_response());
}

#[test]
fn neither_result_nor_error_is_not_a_message() {
    assert_eq!(
        rejection(r#"{"jsonrpc":"2.0","id":1}"#),
        (-32600, Some(1.into()))
    );
}

#[test]
fn a_malformed_error_is_an_invalid_response() {
    for error in [
        "1",
        "null",
        "{}",
        r#"{"code":1}"#,
        r#"{"message":"no"}"#,
        r#"{"code":"1","message":"no"}"#,
        r#"{"code":1.5,"message":"no"}"#,
        r#"{"code":1,"message":null}"#,
        r#"{"code":1,"code":1,"message":"no"}"#,
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":9,"error":{error}}}"#);
        let malformed = malformed(&json);
        assert_eq!(
            (malformed.error.code, &malformed.id),
            (-32600, &Some(9.into())),
            "{error}"
        );
        assert!(malformed.is_response(), "{error}");
    }
}

#[test]
fn an_error_without_id_gets_no_response() {
    for id in ["", r#""id":null,"#] {
        let json =
            format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"what?"}}}}"#);
        let message = one(&json);
        assert!(matches!(message, Message::ErrorWithoutId(error) if error.code == -32700));
    }
}

#[test]
fn a_result_needs_an_id() {
    for id in ["", r#""id":null,"#, r#""id":1.5,"#, r#""id":1,"id":1,"#] {
        let malformed = malformed(format!(r#"{{"jsonrpc":"2.0",{id}"result":{{}}}}"#));
        assert_eq!(
            (malformed.error.code, &malformed.id),
            (-32600, &None),
            "{id}"
        );
        assert!(malformed.is_response());
    }
}

#[test]
fn the_kind_of_a_result_is_found_during_the_scan() {
    use crate::types::ResultType;

    for (result, kind) in [
        ("{}", Some(ResultType::Complete)),
        (r#"{"a":{"resultType":"task"}}"#, Some(ResultType::Complete)),
        (
            r#"{"a":[1], "resultType" : "task"}"#,
            Some(ResultType::Task),
        ),
        (
            r#"{"result\u0054ype":"task","a":1}"#,
            Some(ResultType::Task),
        ),
        (
            r#"{"resultType":"n\u0065w"}"#,
            Some(ResultType::Unknown("new".into())),
        ),
        (r#"{"resultType":"task","resultType":"complete"}"#, None),
        (r#"{"resultType":7}"#, None),
        ("[]", None),
        ("null", None),
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let Ok(Incoming::One(Message::Response(response))) = parse(json.as_bytes()) else {
            panic!("{json}");
        };

        assert_eq!(response.kind, kind, "{json}");
        assert_eq!(response.outcome, Ok(result));
    }
}
