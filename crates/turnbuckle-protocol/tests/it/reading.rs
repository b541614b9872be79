//! Deserialization is lenient where the specification allows extensions, and strict elsewhere.

use serde_json::{Value, json};
use turnbuckle_protocol::types::{
    elicitation::{EnumOption, PrimitiveSchema},
    *,
};

#[test]
fn every_payload_round_trips() {
    for sample in crate::samples::all() {
        (sample.round_trip)();
    }
}

#[test]
fn an_unknown_content_block_is_preserved() {
    let value = json!({ "type": "hologram", "data": { "x": 1 } });

    let block: ContentBlock = serde_json::from_value(value.clone()).unwrap();

    assert_eq!(block, ContentBlock::Unknown(value.clone()));
    assert_eq!(serde_json::to_value(block).unwrap(), value);
}

#[test]
fn a_malformed_content_block_is_an_error() {
    for value in [
        json!({ "type": "text" }),
        json!({ "type": "image", "data": "AAAA" }),
        json!({ "type": "resource", "resource": { "uri": "a" } }),
        json!({ "text": "a" }),
        json!({ "type": 1 }),
        json!("text"),
        json!(null),
    ] {
        assert!(
            serde_json::from_value::<ContentBlock>(value.clone()).is_err(),
            "{value}"
        );
    }
}

#[test]
fn null_is_structured_content() {
    let null: CallToolResult =
        serde_json::from_value(json!({ "content": [], "structuredContent": null })).unwrap();
    let none: CallToolResult = serde_json::from_value(json!({})).unwrap();

    assert_eq!(null.structured_content, Some(Value::Null));
    assert_eq!(none.structured_content, None);
    assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"content":[]}"#);
}

#[test]
fn the_kind_of_a_result_is_read_without_the_other_members() {
    for (text, kind) in [
        ("{}", ResultType::Complete),
        (
            r#"{"resultType":"complete","content":[]}"#,
            ResultType::Complete,
        ),
        (
            r#"{"a":[1],"resultType":"input_required"}"#,
            ResultType::InputRequired,
        ),
        (r#"{"resultType":"task"}"#, ResultType::Task),
        (r#"{"resultType":"new"}"#, ResultType::Unknown("new".into())),
    ] {
        assert_eq!(ResultType::from_result_json(text).unwrap(), kind, "{text}");
    }
}

#[test]
fn integers_may_be_written_with_a_fraction_of_zero() {
    let read = |ttl: Value| {
        serde_json::from_value::<ListToolsResult>(json!({ "tools": [], "ttlMs": ttl }))
            .map(|result| result.ttl_ms)
            .ok()
    };

    assert_eq!(read(json!(5)), Some(Some(5)));
    assert_eq!(read(json!(5.0)), Some(Some(5)));
    assert_eq!(read(json!(-1)), Some(Some(0)));
    assert_eq!(read(json!(1e300)), Some(Some(u64::MAX)));
    assert_eq!(read(Value::Null), Some(None));
    assert_eq!(read(json!(0.5)), None);
    assert_eq!(read(json!("5")), None);
}

#[test]
fn whole_numbers_are_written_without_a_fraction() {
    let params = ProgressParams::new(1, 2).total(2.5);

    let text = serde_json::to_string(&params).unwrap();

    assert_eq!(text, r#"{"progressToken":1,"progress":2,"total":2.5}"#);
}

#[test]
fn unknown_members_and_nulls_are_ignored() {
    let tool: Tool = serde_json::from_value(json!({
        "name": "a", "inputSchema": { "type": "object" }, "title": null, "_meta": null, "future": 1,
        "icons": [{ "src": "data:,", "theme": "sepia", "future": 1 }],
    }))
    .unwrap();

    assert_eq!(tool.title, None);
    assert!(tool.meta.is_empty());
    assert_eq!(tool.icons[0].theme, None);
}

#[test]
fn an_unknown_input_request_is_preserved() {
    let value = json!({ "method": "camera/look", "params": { "at": "cat" } });

    let request: InputRequest = serde_json::from_value(value.clone()).unwrap();

    assert_eq!(request.method(), "camera/look");
    assert_eq!(serde_json::to_value(request).unwrap(), value);
}

#[test]
fn an_input_request_may_omit_its_parameters() {
    let request: InputRequest = serde_json::from_value(json!({ "method": "roots/list" })).unwrap();

    assert_eq!(request, InputRequest::ListRoots(EmptyParams::default()));
}

#[test]
fn an_elicitation_without_mode_is_a_form() {
    let form = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    let url = json!({ "mode": "url", "message": "m", "url": "https://example.com" });

    let read = |value: Value| serde_json::from_value::<ElicitParams>(value);

    assert!(matches!(read(form.clone()), Ok(ElicitParams::Form(_))));
    assert!(matches!(read(url), Ok(ElicitParams::Url(_))));
    let mut other = form;
    other["mode"] = "dream".into();
    assert!(read(other).is_err());
}

#[test]
fn every_form_of_a_choice_is_accepted() {
    let titled = [EnumOption::titled("a", "A"), EnumOption::titled("b", "B")];
    let bare = [EnumOption::from("a"), EnumOption::from("b")];
    let options = json!([{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }]);
    for (value, expected) in [
        (json!({ "type": "string", "enum": ["a", "b"] }), &bare),
        (
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"] }),
            &titled,
        ),
        (json!({ "type": "string", "oneOf": options }), &titled),
        (
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }),
            &bare,
        ),
        (
            json!({ "type": "array", "items": { "anyOf": options } }),
            &titled,
        ),
    ] {
        let field: PrimitiveSchema = serde_json::from_value(value.clone()).unwrap();
        let found = match &field {
            PrimitiveSchema::SingleSelect(choice) => choice.options(),
            PrimitiveSchema::MultiSelect(choices) => choices.options(),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{value}");
        assert_eq!(serde_json::to_value(&field).unwrap(), value);
    }
}

#[test]
fn fields_outside_of_the_restricted_schema_are_rejected() {
    for value in [
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "array", "items": { "type": "object" } }),
        json!({ "type": "null" }),
        json!({}),
        json!(true),
    ] {
        assert!(
            serde_json::from_value::<PrimitiveSchema>(value.clone()).is_err(),
            "{value}"
        );
    }
}

#[test]
fn fields_keep_their_order() {
    let schema = crate::samples::form();
    let names: Vec<_> = schema.fields().map(|(name, _)| name.to_owned()).collect();

    let text = serde_json::to_string(&schema).unwrap();
    let read: elicitation::ElicitSchema = serde_json::from_str(&text).unwrap();

    assert_eq!(
        read.fields().map(|(name, _)| name).collect::<Vec<_>>(),
        names
    );
    assert!(read.is_required("name") && !read.is_required("mail"));
}

#[test]
fn a_field_is_either_required_or_not() {
    use elicitation::{BooleanSchema, ElicitSchema};

    let schema = ElicitSchema::new()
        .required("a", BooleanSchema::new())
        .optional("a", BooleanSchema::new())
        .required("b", BooleanSchema::new())
        .required("b", BooleanSchema::new().title("B"));

    assert_eq!(
        serde_json::to_value(schema).unwrap(),
        json!({
            "type": "object",
            "properties": { "a": { "type": "boolean" }, "b": { "type": "boolean", "title": "B" } },
            "required": ["b"],
        })
    );
}

#[test]
fn log_levels_are_ordered_by_severity() {
    assert!(LogLevel::ALL.is_sorted());
    assert_eq!("warning".parse(), Ok(LogLevel::Warning));
    assert!("Warning".parse::<LogLevel>().is_err());
    for level in LogLevel::ALL {
        assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
    }
}

#[test]
fn a_result_has_at_most_a_hundred_suggestions() {
    let completion = Completion::new(vec!["a".to_owned(); 101]);

    assert_eq!(completion.values.len(), 100);
    assert_eq!(completion.total, Some(101));
    assert_eq!(completion.has_more, Some(true));
}

#[test]
fn only_missing_capabilities_are_returned() {
    let object = |value: Value| value.as_object().unwrap().clone();
    let read = |value: Value| serde_json::from_value::<ClientCapabilities>(value).unwrap();
    let missing = |declared: Value, required: Value| {
        let missing = read(declared).missing(&read(required));
        missing.map(|missing| object(serde_json::to_value(missing).unwrap()))
    };
    for (declared, required, expected) in [
        (json!({}), json!({}), None),
        (json!({ "roots": {} }), json!({ "roots": {} }), None),
        (
            json!({}),
            json!({ "roots": {} }),
            Some(json!({ "roots": {} })),
        ),
        (json!({ "sampling": {} }), json!({ "sampling": {} }), None),
        (
            json!({ "sampling": {} }),
            json!({ "sampling": { "tools": {} } }),
            Some(json!({ "sampling": { "tools": {} } })),
        ),
        (
            json!({}),
            json!({ "sampling": { "tools": {} } }),
            Some(json!({ "sampling": { "tools": {} } })),
        ),
        (
            json!({ "elicitation": {} }),
            json!({ "elicitation": { "form": {} } }),
            None,
        ),
        (
            json!({ "elicitation": {} }),
            json!({ "elicitation": { "url": {} } }),
            Some(json!({ "elicitation": { "url": {} } })),
        ),
        (
            json!({ "elicitation": { "url": {} } }),
            json!({ "elicitation": {} }),
            Some(json!({ "elicitation": { "form": {} } })),
        ),
        (
            json!({ "extensions": { "a.b/c": {} } }),
            json!({ "extensions": { "a.b/c": {}, "d.e/f": { "x": 1 } } }),
            Some(json!({ "extensions": { "d.e/f": { "x": 1 } } })),
        ),
    ] {
        assert_eq!(missing(declared, required), expected.map(object));
    }
}

#[test]
fn a_single_response_to_a_multi_select_becomes_a_list() {
    let mut answers = json!({ "tags": "a", "sizes": ["s"], "color": "red", "name": "Ada" });

    crate::samples::form().wrap_single_choices(answers.as_object_mut().unwrap());

    assert_eq!(
        answers,
        json!({ "tags": ["a"], "sizes": ["s"], "color": "red", "name": "Ada" })
    );
}
