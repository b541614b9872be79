use std::{collections::BTreeMap, num::NonZeroU8};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::*;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
#[serde(deny_unknown_fields)]
struct Trip<'a> {
    city: &'a str,
    #[serde(default)]
    legs: Vec<Leg>,
    #[serde(default)]
    by_day: BTreeMap<u8, Leg>,
    kind: Option<Kind>,
    shape: Option<Shape>,
    pair: Option<(u8, Leg)>,
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
    letter: Option<char>,
    count: Option<NonZeroU8>,
    size: Option<u64>,
    ratio: Option<f64>,
    flag: Option<bool>,
    nothing: Option<Wrapped>,
    ignored: Option<IgnoredAny>,
    any: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Leg {
    days: u8,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Wrapped(Leg);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only read")]
enum Kind {
    Fast,
    Slow(Leg),
    Named { leg: Leg },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[expect(dead_code, reason = "only read")]
enum Shape {
    Circle { radius: u8 },
}

fn read(json: &str) -> Result<Trip<'_>, String> {
    from_str(json).map_err(|error| error.to_string())
}

fn mistake(rest: &str) -> String {
    let json = format!(r#"{{"city":"Oslo",{rest}}}"#);
    let from_text = read(&json).unwrap_err();
    let value: Value = serde_json::from_str(&json).unwrap();
    let from_value = super::read::<Trip<'_>, _>(&value).map_err(|error| error.located(&value));
    // A value contains neither raw text nor the text of numbers.
    if !rest.contains("raw") {
        assert_eq!(from_value.unwrap_err().to_string(), from_text);
    }
    from_text
}

#[test]
fn matching_json_is_deserialized() {
    let json = r#"{"city":"Oslo","legs":[{"days":1}],"by_day":{"7":{"days":2}},"kind":"fast",
        "shape":{"kind":"circle","radius":3},"pair":[1,{"days":2}],"raw":[{},[ 1 ]],"letter":"x","count":2,
        "size":9,"ratio":1,"flag":true,"nothing":{"days":1},"ignored":[[]],"any":[{"a":[]}]}"#;

    let trip = read(json).unwrap();

    assert_eq!(trip.city, "Oslo");
    assert_eq!(trip.raw.unwrap().get(), "[{},[ 1 ]]");
    assert_eq!(trip.by_day.len(), 1);
    for kind in [r#"{"slow":{"days":1}}"#, r#"{"named":{"leg":{"days":1}}}"#] {
        assert!(from_str::<Kind>(kind).is_ok(), "{kind}");
    }
}

#[test]
fn an_array_in_place_of_an_object_is_rejected_at_any_depth() {
    for (rest, path) in [
        (r#""legs":[{"days":1},[2]]"#, "legs[1]"),
        (r#""legs":[[]]"#, "legs[0]"),
        (r#""by_day":[]"#, "by_day"),
        (r#""by_day":{"7":[2]}"#, "by_day.7"),
        (r#""pair":[1,[2]]"#, "pair[1]"),
        (r#""nothing":[1]"#, "nothing"),
        (r#""shape":["circle",3]"#, "shape"),
        (r#""kind":{"slow":[1]}"#, "kind.slow"),
        (r#""kind":{"named":[{"days":1}]}"#, "kind.named"),
        (r#""kind":{"named":{"leg":[1]}}"#, "kind.named.leg"),
    ] {
        let expected = format!("`{path}`: invalid type: array, expected object");
        assert_eq!(mistake(rest), expected, "{rest}");
    }
    let whole = read(r#"["Oslo",[],{}]"#).unwrap_err();
    assert_eq!(whole, "invalid type: array, expected object");
}

#[test]
fn errors_use_the_terms_of_json() {
    for (rest, expected) in [
        (
            r#""legs":{}"#,
            "`legs`: invalid type: object, expected array",
        ),
        (
            r#""legs":[{"days":"two"}]"#,
            r#"`legs[0].days`: invalid type: string "two", expected integer from 0 to 255"#,
        ),
        (
            r#""legs":[{"days":1.5}]"#,
            "`legs[0].days`: invalid type: number `1.5`, expected integer from 0 to 255",
        ),
        (
            r#""legs":[{"days":256}]"#,
            "`legs[0].days`: invalid value: number `256`, expected integer from 0 to 255",
        ),
        (
            r#""legs":[{"days":null}]"#,
            "`legs[0].days`: invalid type: null, expected integer from 0 to 255",
        ),
        (r#""legs":[{}]"#, "`legs[0]`: missing field `days`"),
        (
            r#""legs":[{"days":1,"days":2}]"#,
            "`legs[0]`: field `days` occurs twice",
        ),
        (
            r#""legs":[7]"#,
            "`legs[0]`: invalid type: number `7`, expected object",
        ),
        (
            r#""letter":"xy""#,
            r#"`letter`: invalid value: string "xy", expected string of one character"#,
        ),
        (
            r#""count":0"#,
            "`count`: invalid value: number `0`, expected integer from 1 to 255",
        ),
        (
            r#""size":-1"#,
            "`size`: invalid value: number `-1`, expected non-negative integer",
        ),
        (
            r#""ratio":"1""#,
            r#"`ratio`: invalid type: string "1", expected number"#,
        ),
        (
            r#""flag":0"#,
            "`flag`: invalid type: number `0`, expected boolean",
        ),
        (
            r#""flag":{}"#,
            "`flag`: invalid type: object, expected boolean",
        ),
        (
            r#""pair":[1]"#,
            "`pair`: invalid value: array of 1 item, expected array of 2 items",
        ),
        (
            r#""pair":{}"#,
            "`pair`: invalid type: object, expected array of 2 items",
        ),
        (
            r#""kind":"quick""#,
            r#"`kind`: invalid value: string "quick", expected "fast", "slow" or "named""#,
        ),
        (
            r#""kind":3"#,
            r#"`kind`: invalid type: number `3`, expected "fast", "slow" or "named""#,
        ),
        (
            r#""kind":[]"#,
            r#"`kind`: invalid type: array, expected "fast", "slow" or "named""#,
        ),
        (
            r#""shape":7"#,
            "`shape`: invalid type: number `7`, expected object",
        ),
        (r#""city":7"#, "field `city` occurs twice"),
    ] {
        if rest.contains(r#""days":1,"days""#) || rest.contains("city") {
            let json = format!(r#"{{"city":"Oslo",{rest}}}"#);
            assert_eq!(read(&json).unwrap_err(), expected, "{rest}");
            continue;
        }
        assert_eq!(mistake(rest), expected, "{rest}");
    }
    assert!(
        mistake(r#""speed":1"#).starts_with("unknown field `speed`, expected `city`, `legs`, ")
    );
}

#[test]
fn text_that_is_not_json_is_rejected_without_a_position() {
    for (json, expected) in [
        ("", "EOF while parsing a value"),
        ("{\"city\":\"Oslo\"} 1", "trailing characters"),
        (
            r#"{"city":"\ud800"}"#,
            "`city`: unexpected end of hex escape",
        ),
    ] {
        assert_eq!(read(json).unwrap_err(), expected, "{json}");
    }
}

#[test]
fn long_strings_are_shortened() {
    let error = mistake(&format!(r#""legs":"{}""#, "ä".repeat(100_000)));

    assert!(error.len() < 300, "{} bytes", error.len());
    assert!(error.ends_with("ä…\", expected array"), "{error}");
}

#[test]
fn a_name_can_prefix_the_path() {
    let error = |json| from_str::<Vec<Leg>>(json).unwrap_err();

    let inside = error("[[]]").within("legs").within("trip");
    assert_eq!(inside.path(), "trip.legs[0]");
    assert_eq!(
        error("{}").within("legs").to_string(),
        "`legs`: invalid type: object, expected array"
    );
}
