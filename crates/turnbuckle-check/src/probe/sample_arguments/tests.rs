use super::*;

#[track_caller]
fn assert_generates(schema: &Value, expected: Value) {
    assert_eq!(generate(schema), Ok(expected));
}

fn with_property(property: &Value) -> Value {
    json!({ "type": "object", "properties": { "it": property }, "required": ["it"] })
}

#[test]
fn only_required_properties_are_generated() {
    assert_generates(
        &json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a"] }),
        json!({ "a": "check" }),
    );
    assert_generates(&json!({ "type": "object" }), json!({}));
}

#[test]
fn constants_defaults_and_examples_are_used() {
    for (schema, expected) in [
        (json!({ "const": 7 }), json!(7)),
        (json!({ "enum": ["x", "y"] }), json!("x")),
        (json!({ "type": "integer", "default": 3 }), json!(3)),
        (
            json!({ "type": "string", "examples": ["Oslo"] }),
            json!("Oslo"),
        ),
    ] {
        assert_generates(&with_property(&schema), json!({ "it": expected }));
    }
}

#[test]
fn bounds_and_formats_are_respected() {
    for (schema, expected) in [
        (json!({ "type": "integer", "minimum": 5 }), json!(5)),
        (json!({ "type": "integer", "maximum": -2 }), json!(-2)),
        (
            json!({ "type": "integer", "exclusiveMinimum": 1, "multipleOf": 4 }),
            json!(8),
        ),
        (
            json!({ "type": "number", "exclusiveMaximum": 0 }),
            json!(-0.5),
        ),
        (
            json!({ "type": "string", "minLength": 7 }),
            json!("checkaa"),
        ),
        (json!({ "type": "string", "maxLength": 2 }), json!("ch")),
        (
            json!({ "type": "string", "format": "date" }),
            json!("2026-01-01"),
        ),
        (
            json!({ "type": "string", "pattern": "^[A-Z]+$" }),
            json!("A"),
        ),
        (json!({ "type": ["null", "boolean"] }), json!(false)),
    ] {
        assert_generates(&with_property(&schema), json!({ "it": expected }));
    }
}

#[test]
fn references_alternatives_and_nesting_are_followed() {
    let schema = json!({
        "type": "object",
        "$defs": { "Point": { "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] } },
        "properties": {
            "points": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/Point" } },
            "maybe": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Point" }] },
            "both": { "allOf": [{ "$ref": "#/$defs/Point" }, { "properties": { "y": { "const": 1 } }, "required": ["y"] }] },
        },
        "required": ["points", "maybe", "both"],
    });
    assert_generates(
        &schema,
        json!({ "points": [{ "x": 1 }, { "x": 1 }], "maybe": { "x": 1 }, "both": { "x": 1, "y": 1 } }),
    );
}

#[test]
fn first_satisfiable_alternative_is_generated() {
    let by_name = json!({
        "type": "object",
        "properties": { "id": { "type": "integer" }, "name": { "type": "string" } },
        "anyOf": [{ "required": ["id"] }, { "required": ["name"] }],
    });
    assert_generates(&by_name, json!({ "id": 1 }));
    let second = json!({
        "type": "object",
        "properties": { "kind": { "type": "string" } },
        "oneOf": [
            { "properties": { "id": { "type": "string", "pattern": "^only-this$" } }, "required": ["id"] },
            { "$ref": "#/$defs/Named" },
        ],
        "$defs": { "Named": { "properties": { "kind": { "const": "named" } }, "required": ["kind"] } },
    });
    assert_generates(&second, json!({ "kind": "named" }));
    let nested = json!({ "type": "object", "properties": { "a": { "type": "boolean" } }, "oneOf": [{ "required": ["a"] }] });
    assert_generates(&with_property(&nested), json!({ "it": { "a": false } }));
}

#[test]
fn invalid_default_is_ignored() {
    assert_generates(
        &with_property(&json!({ "type": "string", "minLength": 1, "default": "" })),
        json!({ "it": "check" }),
    );
}

#[test]
fn common_generated_schemas_are_supported() {
    for (schema, expected) in [
        // The email pattern of JavaScript libraries.
        (
            json!({ "type": "string", "format": "email", "pattern": "^(?!\\.)(?!.*\\.\\.)[a-z.@]+$" }),
            json!("check@example.com"),
        ),
        (
            json!({ "type": "string", "pattern": "^[A-Z]{3}$" }),
            json!("USD"),
        ),
        (
            json!({ "type": "string", "pattern": "^[A-Z]+-[0-9]+$" }),
            json!("CHECK-1"),
        ),
        (
            json!({ "type": "number", "minimum": 0.1, "maximum": 0.3 }),
            json!(0.2),
        ),
        (
            json!({ "type": "object", "minProperties": 1, "properties": { "a": { "type": "integer" } } }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null }),
            json!(1),
        ),
    ] {
        assert_generates(&with_property(&schema), json!({ "it": expected }));
    }
}

#[test]
fn unsatisfiable_schemas_return_a_reason() {
    for (schema, reason) in [
        (json!(null), "the input schema is not an object"),
        (
            with_property(&json!({ "type": "string", "pattern": "^only-this$" })),
            "`it`: no sample string matches `^only-this$`",
        ),
        (
            with_property(&json!({ "$ref": "#/$defs/Nowhere" })),
            "`it`: unresolvable reference `#/$defs/Nowhere`",
        ),
        (
            with_property(&json!({ "type": "array", "minItems": 1_000_000 })),
            "`it`: an array of 1000000 items is required",
        ),
        (
            with_property(&json!(false)),
            "`it`: a required property matches no value",
        ),
    ] {
        assert_eq!(generate(&schema), Err(reason.to_owned()));
    }
    let loops =
        json!({ "type": "object", "properties": { "it": { "$ref": "#" } }, "required": ["it"] });
    assert!(
        generate(&loops)
            .unwrap_err()
            .ends_with("the input schema is nested too deeply")
    );
    assert!(
        generate(&with_property(
            &json!({ "type": "string", "not": { "const": "check" } })
        ))
        .is_err()
    );
}
