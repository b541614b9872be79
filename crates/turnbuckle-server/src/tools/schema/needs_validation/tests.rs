use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde_json::json;

use super::*;

fn asks_more_of<T: JsonSchema>() -> bool {
    crate::tools::schema::input_schema_for::<T>().needs_validation
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
struct Plain {
    text: String,
    small: i8,
    wide: (u64, ()),
    sizes: Vec<usize>,
    ratio: Option<f32>,
    inner: Option<Box<Plain>>,
    counts: BTreeMap<String, u16>,
    anything: Value,
    colour: Colour,
    tone: Option<Tone>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
enum Colour {
    Red,
    Green,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
enum Tone {
    /// Low.
    Low,
    /// High.
    High,
}

macro_rules! with_field {
    ($(#[$attribute:meta])* $field:ty) => {{
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only described")]
        struct Arguments {
            $(#[$attribute])*
            field: $field,
        }
        asks_more_of::<Arguments>()
    }};
}

#[test]
fn types_say_all_of_most_arguments() {
    assert!(!with_field!(String));
    assert!(!with_field!(Vec<Option<u8>>));
    assert!(!with_field!(i128));
    assert!(!with_field!(Option<Colour>));
    assert!(!with_field!(Vec<Tone>));
    assert!(!with_field!(BTreeMap<String, Vec<bool>>));
    assert!(!asks_more_of::<crate::tools::arguments::NoArguments>());
}

#[test]
fn a_tuple_counts_its_items() {
    assert!(
        asks_more_of::<Plain>(),
        "`wide` is listed with `prefixItems`"
    );
}

#[test]
fn attributes_ask_for_more() {
    assert!(with_field!(
        #[schemars(range(min = 1))]
        u8
    ));
    assert!(with_field!(
        #[schemars(range(max = 9))]
        u64
    ));
    assert!(with_field!(
        #[schemars(range(min = 0))]
        isize
    ));
    assert!(with_field!(
        #[schemars(range(min = 0.0, max = 1.0))]
        f64
    ));
    assert!(with_field!(
        #[schemars(length(min = 1))]
        String
    ));
    assert!(with_field!(#[schemars(length(max = 3))] Vec<String>));
    assert!(with_field!(
        #[schemars(regex(pattern = "^a"))]
        String
    ));
    assert!(with_field!(
        #[schemars(email)]
        String
    ));
    assert!(with_field!(#[schemars(inner(length(min = 1)))] Vec<String>));
    assert!(with_field!(
        #[schemars(extend("enum" = ["a", "b"]))]
        String
    ));
    assert!(with_field!(HashSet<String>));
}

#[test]
fn unknown_members_are_left_to_the_validator() {
    #[derive(JsonSchema)]
    #[schemars(extend("additionalProperties" = false))]
    struct Closed {}

    assert!(asks_more_of::<Closed>());
}

#[test]
fn a_bound_inside_a_definition_is_found() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only described")]
    struct Leg {
        #[schemars(range(min = 1, max = 30))]
        days: u8,
    }

    assert!(!with_field!(Vec<Colour>));
    assert!(with_field!(Vec<Leg>));
    assert!(with_field!(Option<Leg>));
}

#[test]
fn every_assertion_asks_for_more() {
    for keyword in ASSERTIONS {
        let schema = json!({ "type": "object", "properties": { "a": { keyword: {} } } });
        assert!(needs_validation(&schema), "{keyword}");
    }
}

#[test]
fn a_schema_by_hand_asks_for_something_unless_it_is_only_an_object() {
    let asks = |schema: Value| constrains_members(schema.as_object().unwrap());

    assert!(!asks(json!({})));
    assert!(!asks(json!({ "type": "object", "properties": {} })));
    assert!(!asks(
        json!({ "type": "object", "additionalProperties": true })
    ));
    assert!(asks(json!({ "additionalProperties": false })));
    assert!(asks(json!({ "properties": { "a": { "type": "string" } } })));
    assert!(asks(json!({ "required": ["a"] })));
}
