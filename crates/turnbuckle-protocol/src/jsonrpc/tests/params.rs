//! Parameters and their members.

use std::borrow::Cow;

use serde::Deserialize;

use super::*;
use crate::jsonrpc::{OwnedParams, Params, RawObject, RpcError};

fn params(json: &str) -> Result<Params<'_>, RpcError> {
    Params::from_json(json)
}

#[test]
fn members_are_found_by_their_exact_name() {
    let params =
        params(r#"{ "name" : "echo" , "_meta" :{"a":[1]}, "Name":2, "n\u0061m":3 }"#).unwrap();

    assert_eq!(params.get("name"), Some(r#""echo""#));
    assert_eq!(params.get("Name"), Some("2"));
    assert_eq!(params.get("nam"), Some("3"));
    assert_eq!(params.get("NAME"), None);
    assert_eq!(params.get(""), None);
    assert_eq!(params.meta(), Some(r#"{"a":[1]}"#));
}

#[test]
fn any_number_of_members_is_found() {
    for count in 0..20 {
        let members: Vec<_> = (0..count).map(|n| format!(r#""m{n}":{n}"#)).collect();
        let json = format!("{{{}}}", members.join(","));
        let params = params(&json).unwrap();

        for n in 0..count {
            assert_eq!(params.get(&format!("m{n}")), Some(n.to_string().as_str()));
        }
        assert_eq!(params.object().unwrap().members().count(), count);
    }
}

#[test]
fn a_duplicate_parameter_is_rejected_with_the_id() {
    let filler = |count: usize| {
        (0..count)
            .map(|n| format!(r#""m{n}":0,"#))
            .collect::<String>()
    };
    for count in 0..12 {
        for (first, second) in [("a", "a"), ("a", r"\u0061"), (r"\u0061", "a"), ("", "")] {
            let json = format!(
                r#"{{"jsonrpc":"2.0","id":4,"method":"x","params":{{"{first}":1,{}"{second}":1}}}}"#,
                filler(count)
            );
            assert_eq!(rejection(&json), (-32602, Some(4.into())), "{json}");
        }
    }
}

#[test]
fn duplicates_below_the_top_level_are_left_to_the_type() {
    let json = r#"{"jsonrpc":"2.0","id":4,"method":"x","params":{"arguments":{"a":1,"a":2}}}"#;

    assert_eq!(
        request(json).params.get("arguments"),
        Some(r#"{"a":1,"a":2}"#)
    );
}

#[test]
fn an_invalid_envelope_is_reported_before_a_duplicate_parameter() {
    let json = r#"{"jsonrpc":"1.0","id":4,"method":"x","params":{"a":1,"a":2}}"#;

    assert_eq!(rejection(json), (-32600, Some(4.into())));
}

#[test]
fn strings_are_unescaped_or_borrowed() {
    let params =
        params(r#"{"plain":"é","escaped":"a\/\u00e9\ud83d\ude00\"\\\b\f\n\r\t","number":1}"#)
            .unwrap();

    assert!(matches!(
        params.string("plain"),
        Ok(Some(Cow::Borrowed("é")))
    ));
    assert_eq!(
        params.string("escaped").unwrap().unwrap(),
        "a/é😀\"\\\u{8}\u{c}\n\r\t"
    );
    assert_eq!(params.string("missing"), Ok(None));
    let error = params.string("number").unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32602, "`number` must be a string")
    );
}

#[test]
fn a_type_is_read_from_the_whole() {
    #[derive(Deserialize, Debug, PartialEq)]
    struct Call<'a> {
        name: &'a str,
    }
    let good = params(r#"{"name":"echo","more":1}"#).unwrap();
    let bad = params(r#"{"name":1}"#).unwrap();

    assert_eq!(good.parse::<Call<'_>>(), Ok(Call { name: "echo" }));
    assert_eq!(bad.parse::<Call<'_>>().unwrap_err().code, -32602);
    assert_eq!(
        Params::absent().parse::<Call<'_>>().unwrap_err().code,
        -32602
    );
}

#[test]
fn absent_reads_as_an_empty_object() {
    let absent = Params::absent();

    assert!(absent.is_absent());
    assert_eq!(absent.raw(), "{}");
    assert_eq!(absent.get("a"), None);
    assert_eq!(absent.string("a"), Ok(None));
    assert!(
        absent
            .parse::<serde_json::Map<String, serde_json::Value>>()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_object_is_checked_on_its_own() {
    assert_eq!(RawObject::parse("[]").unwrap_err().code, -32602);
    assert_eq!(
        RawObject::parse(r#"{"a":1,"a":1}"#).unwrap_err().code,
        -32602
    );
    assert_eq!(RawObject::parse("{").unwrap_err().code, -32700);
    assert_eq!(RawObject::parse("{} x").unwrap_err().code, -32700);
    assert_eq!(RawObject::parse(" {} ").unwrap().raw(), "{}");
}

#[test]
fn owned_parameters_have_the_same_members() {
    let bytes = br#"{"jsonrpc":"2.0","id":1,"method":"m","params": {"a":1,"_meta":{"x":{"y":2},"z":3},"b":[4]} }"#;
    let Ok(Incoming::One(Message::Request(request))) = parse(bytes) else {
        panic!("this is a request");
    };

    let owned = OwnedParams::from(&request.params);
    let params = owned.as_params();

    assert_eq!(params.raw(), request.params.raw());
    assert_eq!(owned.raw(), request.params.raw());
    assert!(params.members().eq(request.params.members()));
    let meta = params.meta_object().unwrap().unwrap();
    assert_eq!(meta.raw(), r#"{"x":{"y":2},"z":3}"#);
    assert_eq!(meta.get("x"), Some(r#"{"y":2}"#));
    assert_eq!(meta.get("z"), Some("3"));
}

#[test]
fn owned_parameters_can_be_absent_or_have_many_members() {
    let absent = OwnedParams::from(&Params::absent());
    assert!(absent.as_params().is_absent());
    assert_eq!(absent.raw(), "{}");
    assert_eq!(absent.as_params().members().count(), 0);

    let members: Vec<_> = (0..20).map(|n| format!(r#""m{n}":{n}"#)).collect();
    let json = format!("{{{}}}", members.join(","));
    let owned = OwnedParams::from(&params(&json).unwrap());
    assert_eq!(owned.as_params().get("m19"), Some("19"));
}
