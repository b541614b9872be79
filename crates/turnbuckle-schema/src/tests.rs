#![expect(
    clippy::needless_pass_by_value,
    reason = "tests write `json!` in place"
)]

use serde_json::json;
use turnbuckle_spec_coverage::req;

use super::*;

mod bombs;
mod equivalence;

fn validator(schema: Value) -> SchemaValidator {
    let Value::Object(schema) = schema else {
        panic!("{schema} is not an object")
    };
    SchemaValidator::new(&schema).unwrap()
}

fn rejection(schema: Value) -> String {
    let error = SchemaValidator::new(schema.as_object().unwrap()).err();
    error.expect("the schema is rejected").to_string()
}

fn check(validator: &SchemaValidator, arguments: &str) -> Result<(), String> {
    let value = serde_json::from_str(arguments).unwrap();
    Ok(validator.check("arguments", &value)?)
}

/// Returns the error of a value of `arguments.a`.
fn error_of(schema: Value, a: Value) -> String {
    let validator = validator(json!({ "type": "object", "properties": { "a": schema } }));
    let error = validator.check("arguments", &json!({ "a": a }));
    let error = String::from(error.unwrap_err());
    let mistake = error.strip_prefix("`arguments.a`: ");
    mistake.unwrap_or(&error).to_owned()
}

#[test]
fn matching_values_are_valid() {
    let validator =
        validator(json!({ "properties": { "a": { "type": "integer", "minimum": 1 } } }));

    assert_eq!(check(&validator, r#"{"a":1}"#), Ok(()));
    assert_eq!(check(&validator, "{}"), Ok(()));
}

#[test]
fn an_error_has_its_path() {
    let leg = json!({ "properties": { "days": { "type": "integer", "maximum": 30 } } });
    let trip = json!({ "properties": { "trip": { "properties": { "legs": { "items": leg } } } } });

    let legs = r#"{"trip":{"legs":[{"days":1},{"days":"two"},{"days":31}]}}"#;

    let error = check(&validator(trip), legs).unwrap_err();

    assert_eq!(
        error,
        "`arguments.trip.legs[1].days`: invalid type: string \"two\", expected integer; \
         `arguments.trip.legs[2].days`: invalid value: number `31`, expected at most 30"
    );
}

#[test]
fn a_numeric_member_name_is_not_an_index() {
    let schema = json!({ "additionalProperties": { "additionalProperties": { "type": "null" } } });

    let error = check(&validator(schema), r#"{"a/b":{"7":0}}"#).unwrap_err();

    assert!(error.contains("`arguments.a/b.7`:"), "{error}");
}

#[test]
fn every_keyword_describes_its_expectation() {
    let cases = [
        (
            json!({ "type": "string" }),
            json!(5),
            "invalid type: number `5`, expected string",
        ),
        (
            json!({ "type": ["string", "null"] }),
            json!(true),
            "invalid type: boolean `true`, expected null or string",
        ),
        (
            json!({ "minimum": 1 }),
            json!(0),
            "invalid value: number `0`, expected at least 1",
        ),
        (
            json!({ "maximum": 1.5 }),
            json!(2),
            "invalid value: number `2`, expected at most 1.5",
        ),
        (
            json!({ "exclusiveMinimum": 1 }),
            json!(1),
            "invalid value: number `1`, expected more than 1",
        ),
        (
            json!({ "exclusiveMaximum": 1 }),
            json!(1),
            "invalid value: number `1`, expected less than 1",
        ),
        (
            json!({ "multipleOf": 5 }),
            json!(7),
            "invalid value: number `7`, expected a multiple of 5",
        ),
        (
            json!({ "minLength": 2 }),
            json!("ä"),
            "invalid value: string \"ä\", expected at least 2 characters",
        ),
        (
            json!({ "maxLength": 1 }),
            json!("ab"),
            "invalid value: string \"ab\", expected at most 1 character",
        ),
        (
            json!({ "pattern": "^a+$" }),
            json!("b"),
            "invalid value: string \"b\", expected a match of the pattern `^a+$`",
        ),
        (
            json!({ "format": "email" }),
            json!("b"),
            "invalid value: string \"b\", expected the format `email`",
        ),
        (
            json!({ "format": "date-time" }),
            json!("b"),
            "invalid value: string \"b\", expected the format `date-time`",
        ),
        (
            json!({ "minItems": 1 }),
            json!([]),
            "invalid value: array of 0 items, expected at least 1 item",
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "invalid value: array of 2 items, expected at most 1 item",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1]),
            "invalid value: array of 2 items, expected items that all differ",
        ),
        (
            json!({ "contains": { "const": 1 } }),
            json!([2]),
            "invalid value: array of 1 item, expected an item that matches `contains`",
        ),
        (
            json!({ "minProperties": 1 }),
            json!({}),
            "invalid value: object, expected at least 1 member",
        ),
        (
            json!({ "maxProperties": 0 }),
            json!({ "b": 1 }),
            "invalid value: object, expected at most 0 members",
        ),
        (json!({ "required": ["b"] }), json!({}), "missing field `b`"),
        (
            json!({ "dependentRequired": { "b": ["c"] } }),
            json!({ "b": 1 }),
            "missing field `c`",
        ),
        (
            json!({ "additionalProperties": false }),
            json!({ "b": 1 }),
            "expected no fields",
        ),
        (
            json!({ "unevaluatedProperties": false }),
            json!({ "b": 1, "c": 2, "d": 3, "e": 4 }),
            "unknown field `b`, `c`, `d` and 1 more",
        ),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "bc": 1 }),
            "property name: invalid value: string \"bc\", expected at most 1 character",
        ),
        (
            json!({ "const": { "b": 1 } }),
            json!(1),
            "invalid value: number `1`, expected {\"b\":1}",
        ),
        (
            json!({ "enum": ["b", 2, null] }),
            json!("c"),
            "invalid value: string \"c\", expected \"b\", 2 or null",
        ),
        (
            json!({ "not": { "type": "string" } }),
            json!("b"),
            "invalid value: string \"b\", expected a value that does not match `not`",
        ),
        (
            json!({ "if": { "type": "string" }, "then": { "minLength": 2 } }),
            json!("b"),
            "invalid value: string \"b\", expected at least 2 characters",
        ),
        (
            json!({ "allOf": [true, { "minimum": 2 }] }),
            json!(1),
            "invalid value: number `1`, expected at least 2",
        ),
        (
            json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] }),
            json!(3),
            "invalid value: number `3`, expected a match of exactly one alternative",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(error_of(schema.clone(), value), expected, "{schema}");
    }
}

#[test]
fn nested_values_have_their_own_paths() {
    let names = json!({ "patternProperties": { "^x": { "type": "string" } } });
    assert_eq!(
        error_of(names, json!({ "x1": 1 })),
        "`arguments.a.x1`: invalid type: number `1`, expected string"
    );
    let two = json!({ "prefixItems": [true], "items": false });
    assert_eq!(
        error_of(two, json!([1, 2])),
        "`arguments.a[1]`: invalid value: number `2`, expected nothing here"
    );
    let nothing = json!({ "properties": { "b": false } });
    assert_eq!(
        error_of(nothing, json!({ "b": [] })),
        "`arguments.a.b`: invalid value: array of 0 items, expected nothing here"
    );
}

#[test]
fn the_nearest_alternative_is_reported() {
    let shape = json!({ "oneOf": [
        { "type": "object", "properties": { "kind": { "const": "circle" }, "radius": { "type": "number", "minimum": 0 } }, "required": ["kind", "radius"] },
        { "type": "object", "properties": { "kind": { "const": "square" }, "side": { "type": "number" } }, "required": ["kind", "side"] },
        { "type": "null" }
    ] });

    assert_eq!(
        error_of(shape.clone(), json!({ "kind": "circle", "radius": -1 })),
        "`arguments.a.radius`: invalid value: number `-1`, expected at least 0"
    );
    assert_eq!(
        error_of(shape.clone(), json!({ "kind": "square" })),
        "missing field `side`"
    );
    assert_eq!(
        error_of(shape, json!(7)),
        "invalid type: number `7`, expected object or null"
    );
}

#[test]
fn a_report_is_short() {
    let long = "x".repeat(100_000);
    let error = error_of(json!({ "maxLength": 5 }), json!(long));
    assert!(error.len() < 300, "{error}");

    let many = json!({ "additionalProperties": { "type": "string" } });
    let numbers: Map<_, _> = (0..1000)
        .map(|number| (format!("{number}{}", &long[..1000]), json!(1)))
        .collect();
    let error = error_of(many, numbers.into());
    assert!(error.len() < 1200, "{error}");

    let many: Vec<_> = (0..1000).collect();
    assert!(error_of(json!({ "enum": many }), json!("x")).len() < 500);
}

#[test]
fn the_first_error_of_a_huge_value_is_reported() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    let mut huge = vec![json!(0); 100_000];
    huge.push(json!("x"));
    huge.push(json!("y"));

    assert_eq!(
        error_of(numbers, json!(huge)),
        "`arguments.a[100000]`: invalid type: string \"x\", expected integer"
    );
}

/// Each level matches two alternatives that differ only at the bottom: reporting all errors would not terminate in
/// time.
#[test]
fn a_deep_value_of_a_recursive_schema_is_validated_in_time() {
    let node = json!({ "anyOf": [
        { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } }, "required": ["next"] },
        { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "b": true }, "required": ["next"] },
        { "type": "null" }
    ] });
    let schema =
        json!({ "properties": { "a": { "$ref": "#/$defs/node" } }, "$defs": { "node": node } });
    let validator = validator(schema);
    let nested = |depth: usize, end: &str| {
        format!(
            "{{\"a\":{}{end}{}}}",
            "{\"next\":".repeat(depth),
            "}".repeat(depth)
        )
    };

    assert_eq!(check(&validator, &nested(100, "null")), Ok(()));
    assert_eq!(
        check(&validator, &nested(100, "1")),
        Err("`arguments`: does not match the schema".to_owned())
    );
    let shallow = check(&validator, &nested(1, "1")).unwrap_err();
    assert!(shallow.contains("`arguments.a.next`:"), "{shallow}");
}

/// For each combinator and each kind of reference.
#[test]
fn no_kind_of_recursion_makes_validation_slow() {
    let deep = format!("{}1{}", "{\"next\":".repeat(100), "}".repeat(100));
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for reference in ["$ref", "$dynamicRef"] {
            let way = json!({ "type": "object", "properties": { "next": { reference: "#" } } });
            let error = check(&validator(json!({ keyword: [way, way, way] })), &deep);
            assert!(error.is_err(), "{keyword} {reference}");
        }
    }
}

#[test]
fn a_linear_recursive_schema_is_reported_at_any_depth() {
    let schema = json!({ "properties": { "next": { "$ref": "#" }, "end": { "type": "null" } } });
    let deep = format!(
        "{}{}{}",
        "{\"next\":".repeat(100),
        "{\"end\":1}",
        "}".repeat(100)
    );

    let error = check(&validator(schema), &deep).unwrap_err();

    assert!(
        error.ends_with(".next.end`: invalid type: number `1`, expected null"),
        "{error}"
    );
}

#[test]
fn nothing_is_fetched() {
    req!("schema.ref.no-network", "schema.ref.unresolved-reject");
    for remote in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json",
    ] {
        let error = rejection(json!({ "properties": { "a": { "$ref": remote } } }));
        assert!(
            error.starts_with("unresolved reference, other documents are never fetched"),
            "{error}"
        );
        assert!(error.contains(remote), "{error}");
    }
}

#[test]
fn an_unknown_dialect_is_named_in_the_error() {
    req!("schema.dialect.unsupported-error");
    let error = rejection(json!({ "$schema": "https://example.com/dialect" }));

    assert!(error.contains("https://example.com/dialect"), "{error}");
}

#[test]
fn without_a_dialect_the_newest_is_used() {
    req!("schema.dialect.default");
    // Both keywords were added in 2020-12; older dialects ignore them.
    for schema in [
        json!({ "prefixItems": [{ "type": "string" }] }),
        json!({ "$dynamicRef": "#word", "$defs": { "word": { "$dynamicAnchor": "word", "type": "array", "maxItems": 0 } } }),
    ] {
        assert!(!error_of(schema, json!([1])).is_empty());
    }
}

#[test]
fn references_inside_the_schema_are_followed() {
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/b" } }, "$defs": { "b": { "minimum": 1 } } });

    assert!(check(&validator(schema), r#"{"a":0}"#).is_err());
}

#[test]
fn an_invalid_schema_is_rejected() {
    assert_eq!(
        rejection(json!({ "properties": { "a": { "type": "text" } } }))
            .split(':')
            .next(),
        Some("at `/properties/a/type`")
    );
}

/// The engine has neither look-around nor back-references; that makes it linear.
#[test]
fn a_pattern_that_needs_backtracking_is_rejected() {
    for pattern in ["(?=a)b", "(a)\\1"] {
        let error = rejection(json!({ "properties": { "a": { "pattern": pattern } } }));
        assert!(error.contains("/properties/a/pattern"), "{error}");
    }
}

#[test]
fn lenient_skips_such_patterns() {
    let schema = json!({ "properties": {
        "a": { "type": "string", "pattern": "(?=a)b" },
        "b": { "$ref": "#/$defs/b" },
        "c": { "pattern": "^c" }
    }, "$defs": { "b": { "pattern": "(b)\\1", "maxLength": 2 } } });
    let validator = SchemaValidator::lenient(schema.as_object().unwrap()).unwrap();

    assert_eq!(check(&validator, r#"{"a":"x","b":"x","c":"c"}"#), Ok(()));
    for wrong in [r#"{"a":1}"#, r#"{"b":"xxx"}"#, r#"{"c":"x"}"#] {
        assert!(check(&validator, wrong).is_err(), "{wrong}");
    }
    for refused in [
        json!({ "type": "text" }),
        json!({ "properties": { "a": { "$ref": "https://example.com/" } } }),
        json!({ "$ref": "#" }),
        json!({ "pattern": 7 }),
        json!({ "patternProperties": { "(?=a)": true } }),
    ] {
        let outcome = SchemaValidator::lenient(refused.as_object().unwrap());
        assert!(outcome.is_err(), "{refused}");
    }
}

#[test]
fn a_pattern_that_is_exponential_elsewhere_is_matched() {
    let pattern = json!({ "pattern": "^(a+)+$" });

    let error = error_of(pattern, json!("a".repeat(50_000) + "!"));

    assert!(
        error.ends_with("expected a match of the pattern `^(a+)+$`"),
        "{error}"
    );
}

#[test]
fn an_older_dialect_is_used_if_the_schema_names_it() {
    req!("schema.dialect.validate");
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": { "a": { "items": [{ "type": "string" }] } }
    });

    assert!(check(&validator(schema), r#"{"a":[1]}"#).is_err());
}

#[test]
fn formats_of_rust_types_are_ignored() {
    let schema =
        json!({ "properties": { "a": { "format": "int64" }, "b": { "format": "color" } } });

    assert_eq!(check(&validator(schema), r#"{"a":1,"b":"x"}"#), Ok(()));
}
