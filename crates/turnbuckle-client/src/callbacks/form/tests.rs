use serde_json::json;
use turnbuckle_spec_coverage::req;

use crate::callbacks::form::*;

fn form(schema: Value) -> FormRequest {
    let mut params = json!({ "message": "who are you?" });
    params["requestedSchema"] = schema;
    FormRequest::new(serde_json::from_value(params).unwrap()).unwrap()
}

/// A form with one required field `it`.
fn field(schema: Value) -> FormRequest {
    let mut form_schema = json!({ "type": "object", "required": ["it"] });
    form_schema["properties"]["it"] = schema;
    form(form_schema)
}

fn accepts(schema: &Value, value: &Value) -> bool {
    field(schema.clone()).accept(json!({ "it": value })).is_ok()
}

#[test]
fn missing_fields_get_their_defaults() {
    let form = form(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "idle"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
            "colours": {
                "type": "array",
                "items": { "anyOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] },
                "default": ["g"],
            },
            "note": { "type": "string" },
        },
        "required": ["name"],
    }));
    let defaults = json!({
        "name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": true, "colours": ["g"],
    });

    assert_eq!(Value::Object(form.defaults()), defaults);
    assert_eq!(
        form.accept_defaults().unwrap().content.unwrap(),
        form.defaults()
    );
    let mut mine = form.defaults();
    mine.insert("age".to_owned(), json!(31));
    let result = form.accept(json!({ "age": 31, "note": null })).unwrap();
    assert_eq!(result.action, ElicitAction::Accept);
    assert_eq!(result.content, Some(mine));
}

#[test]
fn invalid_content_is_rejected() {
    // A form is checked the same way in every revision that has one.
    req!("elicitation.form.validate-client", in: ["2025-11-25", "2026-07-28"]);
    req!("elicitation.validate-2025-06-18", in: ["2025-06-18"]);
    let text = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    let whole = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
    let number = json!({ "type": "number", "minimum": 0.5 });
    let choice = json!({ "type": "string", "enum": ["a", "b"] });
    let titled = json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] });
    let named = json!({ "type": "string", "enum": ["a"], "enumNames": ["A"] });
    let several = json!({
        "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "enum": ["a", "b", "c"] },
    });
    for (schema, fit, unfit) in [
        (
            &text,
            json!(["ab", "äöü"]),
            json!(["a", "abcd", 1, true, ["ab"]]),
        ),
        (&whole, json!([1, 9, 2.0]), json!([0, 10, 1.5, "1", true])),
        (&number, json!([0.5, 7]), json!([0.4, -1, "1"])),
        (
            &json!({ "type": "boolean" }),
            json!([true, false]),
            json!(["true", 0, 1]),
        ),
        (&choice, json!(["a", "b"]), json!(["c", "", 1, ["a"]])),
        (&titled, json!(["a"]), json!(["A", "b"])),
        (&named, json!(["a"]), json!(["A"])),
        (
            &several,
            json!([["a"], ["a", "c"]]),
            json!([[], ["a", "b", "c"], ["d"], "a", [1]]),
        ),
    ] {
        for value in fit.as_array().unwrap() {
            assert!(accepts(schema, value), "{schema} {value}");
        }
        for value in unfit.as_array().unwrap() {
            assert!(!accepts(schema, value), "{schema} {value}");
        }
    }
}

#[test]
fn string_formats_are_checked() {
    for (format, fit, unfit) in [
        (
            "email",
            json!(["ada@example.com", "a.b+c@x", "ü@münchen.example"]),
            json!([
                "",
                "ada",
                "@example.com",
                "ada@",
                "a b@example.com",
                "a@b@c",
                "a..b@x",
                "a@-x",
                "a@x..y"
            ]),
        ),
        (
            "uri",
            json!([
                "https://example.com/a?b#c",
                "mailto:ada@example.com",
                "urn:isbn:1",
                "a:%20"
            ]),
            json!([
                "",
                "example.com",
                "/a",
                ":a",
                "1a:b",
                "a:",
                "a:b c",
                "a:%2",
                "a:ü",
                "a:<b>"
            ]),
        ),
        (
            "date",
            json!(["2026-07-28", "2024-02-29", "2000-02-29"]),
            json!([
                "",
                "2026-7-28",
                "2026-13-01",
                "2026-00-10",
                "2026-02-29",
                "1900-02-29",
                "2026-04-31",
                "2026-07-28Z",
                "+026-07-28"
            ]),
        ),
        (
            "date-time",
            json!([
                "2026-07-28T12:00:00Z",
                "2026-07-28t23:59:60.123z",
                "2026-07-28T00:00:00+02:00",
                "2026-07-28T00:00:00-11:30"
            ]),
            json!([
                "2026-07-28",
                "2026-07-28T12:00:00",
                "2026-07-28 12:00:00Z",
                "2026-07-28T24:00:00Z",
                "2026-07-28T12:00Z",
                "2026-07-28T12:00:00.Z",
                "2026-07-28T12:00:00+2:00",
                "2026-07-28T12:00:00+25:00",
                "2026-02-30T12:00:00Z",
                "T",
                "TZ",
                "ü"
            ]),
        ),
    ] {
        let schema = json!({ "type": "string", "format": format });
        for value in fit.as_array().unwrap() {
            assert!(accepts(&schema, value), "{format} {value}");
        }
        for value in unfit.as_array().unwrap() {
            assert!(!accepts(&schema, value), "{format} {value}");
        }
    }
}

#[test]
fn an_error_names_the_field_and_the_expected_value() {
    let form = form(json!({
        "type": "object",
        "properties": { "age": { "type": "integer", "minimum": 18 }, "name": { "type": "string" } },
        "required": ["name"],
    }));

    let error = |content: Value| form.accept(content).unwrap_err().to_string();

    assert_eq!(error(json!({})), "`name` is required");
    assert_eq!(error(json!({ "name": null })), "`name` is required");
    assert_eq!(
        error(json!({ "nom": "Ada" })),
        "the form does not have a field `nom`"
    );
    assert_eq!(
        error(json!({ "name": "Ada", "age": 3 })),
        "`age` must be an integer, at least 18"
    );
    assert_eq!(
        error(json!("Ada")),
        "the content of a form must be an object"
    );
}

#[test]
fn a_form_may_be_declined_or_cancelled() {
    let form = field(json!({ "type": "string" }));

    assert_eq!(
        serde_json::to_value(form.decline()).unwrap(),
        json!({ "action": "decline" })
    );
    assert_eq!(
        serde_json::to_value(form.cancel()).unwrap(),
        json!({ "action": "cancel" })
    );
}

#[test]
fn a_form_with_too_many_fields_is_rejected() {
    let fields = (0..2_000).map(|at| (at.to_string(), json!({ "type": "string" })));
    let schema = json!({ "type": "object", "properties": fields.collect::<JsonObject>() });
    let params = json!({ "message": "", "requestedSchema": schema });

    let error = FormRequest::new(serde_json::from_value(params).unwrap()).unwrap_err();

    assert_eq!(error.code, -32602);
}

#[test]
fn one_field_can_be_checked() {
    let form = form(json!({
        "type": "object",
        "properties": { "contact": { "type": "string", "format": "email" } },
    }));
    let error = |name: &str, value: Value| form.check_field(name, &value).unwrap_err().to_string();

    assert_eq!(form.check_field("contact", &json!("a@b.example")), Ok(()));
    assert_eq!(
        error("contact", json!("a@-b")),
        "`contact` must be an email address"
    );
    assert_eq!(
        error("phone", json!("1")),
        "the form does not have a field `phone`"
    );
}
