//! Tests of the `.shapes` notation.

use serde_json::json;

use crate::message_schema::{expression, schema_set, validator::MessageValidator};

fn parse(text: &'static str) -> Result<schema_set::SchemaSet, String> {
    let mut sets = schema_set::parse_all(&[("a", &[text])])?;
    Ok(sets.remove("a").expect("the set exists"))
}

/// Returns the violations of a value of the shape `It`.
fn violation_texts(text: &'static str, value: impl Into<serde_json::Value>) -> Vec<String> {
    let schemas = parse(text).expect("the notation is valid");
    let message = json!({ "it": value.into() });
    let violations =
        MessageValidator::new(&schemas).member(&message, "it", true, schemas.shape("It"));
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn included_fields_can_be_replaced() {
    let text = "\
Base
  a: string
  b: string

It
  ..Base
  b?: integer
  c:
    d: [boolean; ..=1]
";
    assert_eq!(
        violation_texts(text, json!({ "a": "", "c": { "d": [true] } })),
        [""; 0]
    );
    assert_eq!(
        violation_texts(text, json!({ "b": "", "c": { "d": [1, true] } })),
        [
            "`it.a`: a string is expected, but it is missing",
            "`it.b`: an integer is expected, but it is the string \"\"",
            "`it.c.d`: at most 1 items are expected, but there are 2",
            "`it.c.d[0]`: a boolean is expected, but it is the number `1`",
        ]
    );
}

#[test]
fn later_file_extends_earlier_definitions() {
    let before = "client requests\n  a  It? -> It\n\nIt\n  a: string\n";
    let later = "like 1\n\nIt\n  ..It\n  b: string\n";
    let sets =
        schema_set::parse_all(&[("1", &[before]), ("2", &[later])]).expect("both files are valid");

    let fields = |date: &str| {
        let fields = sets[date].shape("It").fields();
        fields.map(|field| field.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fields("1"), ["a"]);
    assert_eq!(fields("2"), ["a", "b"]);
    assert!(sets["2"].request("a").is_some());
}

#[test]
fn definitions_may_continue_on_the_next_line() {
    let text = "It\n  = \"a\"\n  | \"b\"\n";

    assert_eq!(
        violation_texts(text, json!("c")),
        ["`it`: `a` or `b` is expected, but it is the string \"c\""]
    );
}

#[test]
fn numbers_have_bounds() {
    for (text, right, wrong, expected) in [
        (
            "It = number 0..=1",
            json!(0.5),
            json!(1.5),
            "a number from 0 to 1",
        ),
        (
            "It = integer 0..",
            json!(0),
            json!(-1),
            "an integer of 0 or more",
        ),
        ("It = integer", json!(1.0), json!(1.5), "an integer"),
    ] {
        assert_eq!(violation_texts(text, right), [""; 0]);
        assert_eq!(
            violation_texts(text, wrong.clone()),
            [format!(
                "`it`: {expected} is expected, but it is the number `{wrong}`"
            )]
        );
    }
}

#[test]
fn all_base64_alphabets_are_accepted() {
    for right in ["", "aGk=", "aGk", "_-8=", "aGVs\r\nbG8="] {
        assert_eq!(
            violation_texts("It = base64", json!(right)),
            [""; 0],
            "{right}"
        );
    }
    for wrong in ["a", "aGk!", "data:image/png;base64,aGk=", "hello you"] {
        assert_eq!(
            violation_texts("It = base64", json!(wrong)).len(),
            1,
            "{wrong}"
        );
    }
}

#[test]
fn parse_errors_name_the_line() {
    for (text, why) in [
        ("It\n  a string\n", "a, line 2: a field needs a colon"),
        ("It\n  a: text\n", "a, line 2: unknown shape `text`"),
        ("It = [string\n", "a, line 1: expected `]`"),
        ("It = string string\n", "a, line 1: unexpected `string`"),
        ("\n  a: string\n", "a, line 2: unexpected indentation"),
        (
            "client requests\n  ping  It\n",
            "a, line 2: a request needs a result",
        ),
        ("errors\n  x It\n", "a, line 2: invalid code `x`"),
        ("It = \"a\n", "a, line 1: expected a closing quotation mark"),
        ("It\n  a: Other\n", "a: unknown shape `Other`"),
        ("It\n  ..Other\n", "a: unknown shape `Other`"),
        (
            "It\n  ..Other\n\nOther\n  ..It\n",
            "a: a shape includes itself",
        ),
        ("like 0\n", "a: unknown revision `0`"),
    ] {
        assert_eq!(
            parse(text).expect_err("the notation is invalid"),
            why,
            "{text}"
        );
    }
    assert_eq!(expression::parse(""), Err("expected a shape".to_owned()));
}
