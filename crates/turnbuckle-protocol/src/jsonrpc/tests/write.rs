//! Written messages.

use serde_json::{json, value::RawValue};

use super::*;
use crate::jsonrpc::{
    RpcError, write_error, write_error_with_null_id, write_notification, write_request,
    write_result,
};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b">".to_vec();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn results_echo_the_id_as_received() {
    let id = RequestId::from_json("1.0").unwrap();

    let line = written(|out| write_result(out, &id, br#"{"a":1}"#));

    assert_eq!(line, r#">{"jsonrpc":"2.0","id":1.0,"result":{"a":1}}"#);
}

#[test]
fn errors_with_without_and_with_null_id() {
    let error = RpcError::invalid_params("no\nway").with_data(json!({"a": 1}));
    let tail = r#""error":{"code":-32602,"message":"no\nway","data":{"a":1}}}"#;

    let with = written(|out| write_error(out, Some(&"x".into()), &error));
    let without = written(|out| write_error(out, None, &error));
    let null = written(|out| write_error_with_null_id(out, &error));

    assert_eq!(with, format!(r#">{{"jsonrpc":"2.0","id":"x",{tail}"#));
    assert_eq!(without, format!(r#">{{"jsonrpc":"2.0",{tail}"#));
    assert_eq!(null, format!(r#">{{"jsonrpc":"2.0","id":null,{tail}"#));
}

#[test]
fn calls_omit_null_parameters() {
    let request = written(|out| write_request(out, &1.into(), "a", &json!({"b": 2})).unwrap());
    let notification = written(|out| write_notification(out, "n", &()).unwrap());

    assert_eq!(
        request,
        r#">{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":2}}"#
    );
    assert_eq!(notification, r#">{"jsonrpc":"2.0","method":"n"}"#);
}

#[test]
fn everything_stays_on_one_line() {
    let pretty = "{\r\n  \"a\": \"x\\ny\"\n}";
    let raw = RawValue::from_string(pretty.to_owned()).unwrap();

    let result = written(|out| write_result(out, &1.into(), pretty.as_bytes()));
    let request = written(|out| write_request(out, &1.into(), "a", &raw).unwrap());

    assert_eq!(
        result,
        ">{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{    \"a\": \"x\\ny\" }}"
    );
    assert!(!request.contains(['\n', '\r']));
}

#[test]
fn unserializable_parameters_leave_the_buffer_unchanged() {
    let unwritable = std::collections::HashMap::from([((1, 2), 3)]);
    let mut out = b"before".to_vec();

    assert!(write_request(&mut out, &1.into(), "a", &unwritable).is_err());
    assert!(write_notification(&mut out, "a", &unwritable).is_err());

    assert_eq!(out, b"before");
}

#[test]
fn written_messages_can_be_parsed() {
    let mut out = Vec::new();
    write_request(
        &mut out,
        &"a\"b".into(),
        "tools/call",
        &json!({"name": "é\u{0}"}),
    )
    .unwrap();

    let text = String::from_utf8(out).unwrap();
    let request = request(&text);

    assert_eq!(request.id, "a\"b".into());
    assert_eq!(request.params.string("name").unwrap().unwrap(), "é\0");
}

#[test]
fn a_long_method_name_is_truncated_in_the_error() {
    let error = RpcError::method_not_found(&"é".repeat(1_000_000));

    assert!(error.message.len() < 300);
}
