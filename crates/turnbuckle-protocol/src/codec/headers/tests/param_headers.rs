//! `x-mcp-header` in input schemas.

use serde_json::{Value, json};

use crate::codec::headers::{InvalidParamHeader, ParamHeader, param_headers};

fn property(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"region": schema}})
}

fn pointer(error: &InvalidParamHeader) -> &str {
    match error {
        InvalidParamHeader::Name { pointer }
        | InvalidParamHeader::Repeated { pointer, .. }
        | InvalidParamHeader::Kind { pointer }
        | InvalidParamHeader::Unreachable { pointer } => pointer,
        InvalidParamHeader::TooMany => "",
    }
}

#[test]
fn param_headers_are_found_in_order_and_at_any_depth() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
        "where": {"type": "object", "properties": {
            "shard": {"type": "integer", "x-mcp-header": "Shard"},
            "deep": {"properties": {"dry": {"type": ["boolean", "null"], "x-mcp-header": "Method"}}},
        }},
        "last": {"type": "string", "x-mcp-header": "!#$%&'*+-.^_`|~09azAZ"},
    }});
    let mark = |header: &str, path: &[&str]| ParamHeader {
        header: header.to_owned(),
        path: path.iter().map(ToString::to_string).collect(),
    };

    let expected = [
        mark("Region", &["region"]),
        mark("Shard", &["where", "shard"]),
        mark("Method", &["where", "deep", "dry"]),
        mark("!#$%&'*+-.^_`|~09azAZ", &["last"]),
    ];
    assert_eq!(param_headers(&schema).unwrap(), expected);
}

#[test]
fn a_schema_without_the_keyword_has_no_param_headers() {
    for schema in [
        json!({"type": "object"}),
        json!(true),
        json!({}),
        json!(null),
    ] {
        assert_eq!(param_headers(&schema), Ok(vec![]));
    }
}

#[test]
fn a_name_must_be_a_token() {
    for name in [
        json!(""),
        json!("a b"),
        json!("a:b"),
        json!("é"),
        json!("a\r\nb"),
        json!("a\t"),
        json!(1),
        json!(null),
        json!("(a)"),
    ] {
        let error =
            param_headers(&property(&json!({"type": "string", "x-mcp-header": name}))).unwrap_err();
        assert_eq!(
            error,
            InvalidParamHeader::Name {
                pointer: "/properties/region".to_owned()
            },
            "{name}"
        );
    }
}

#[test]
fn names_are_unique_whatever_their_case() {
    let schema = json!({"properties": {
        "a": {"type": "string", "x-mcp-header": "Region"},
        "b": {"type": "object", "properties": {"c/d": {"type": "string", "x-mcp-header": "REGION"}}},
    }});

    let error = param_headers(&schema).unwrap_err();

    assert!(matches!(&error, InvalidParamHeader::Repeated { name, .. } if name == "REGION"));
    assert_eq!(pointer(&error), "/properties/b/properties/c~1d");
}

#[test]
fn only_strings_integers_and_booleans_are_allowed() {
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "integer"]),
        json!([]),
        json!(["null"]),
        json!(["null", "number"]),
        json!(null),
    ] {
        let error =
            param_headers(&property(&json!({"type": kind, "x-mcp-header": "A"}))).unwrap_err();
        assert!(matches!(error, InvalidParamHeader::Kind { .. }), "{kind}");
    }
    assert!(matches!(
        param_headers(&property(
            &json!({"$ref": "#/$defs/a", "x-mcp-header": "A"})
        )),
        Err(InvalidParamHeader::Kind { .. })
    ));
}

#[test]
fn the_keyword_is_rejected_anywhere_else() {
    let marked = || json!({"type": "string", "x-mcp-header": "A"});
    let with_property = || json!({"properties": {"p": marked()}});
    for (schema, at) in [
        (json!({"type": "string", "x-mcp-header": "A"}), ""),
        (
            property(&json!({"type": "array", "items": marked()})),
            "/properties/region/items",
        ),
        (
            property(&json!({"prefixItems": [{}, marked()]})),
            "/properties/region/prefixItems/1",
        ),
        (json!({"oneOf": [with_property()]}), "/oneOf/0/properties/p"),
        (json!({"anyOf": [with_property()]}), "/anyOf/0/properties/p"),
        (json!({"allOf": [with_property()]}), "/allOf/0/properties/p"),
        (json!({"not": with_property()}), "/not/properties/p"),
        (json!({"if": with_property()}), "/if/properties/p"),
        (json!({"then": with_property()}), "/then/properties/p"),
        (json!({"else": with_property()}), "/else/properties/p"),
        (json!({"$defs": {"d": marked()}}), "/$defs/d"),
        (
            json!({"definitions": {"properties": marked()}}),
            "/definitions/properties",
        ),
        (
            json!({"patternProperties": {"^a": marked()}}),
            "/patternProperties/^a",
        ),
        (
            json!({"additionalProperties": marked()}),
            "/additionalProperties",
        ),
        (
            json!({"dependentSchemas": {"a": with_property()}}),
            "/dependentSchemas/a/properties/p",
        ),
    ] {
        let error = param_headers(&schema).unwrap_err();
        assert_eq!(
            error,
            InvalidParamHeader::Unreachable {
                pointer: at.to_owned()
            },
            "{schema}"
        );
    }
}

#[test]
fn data_and_property_names_are_not_keywords() {
    let schema = json!({
        "properties": {
            "x-mcp-header": {"type": "number"},
            "a": {"default": {"x-mcp-header": ""}, "const": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": 1}], "examples": [{"x-mcp-header": 1}]},
        },
    });

    assert_eq!(param_headers(&schema), Ok(vec![]));
}

#[test]
fn a_schema_of_any_size_is_searched() {
    let mut deep = json!({"type": "string", "x-mcp-header": "A"});
    for _ in 0..500 {
        let properties = Value::Object([("p".to_owned(), deep)].into_iter().collect());
        deep = Value::Object(
            [("properties".to_owned(), properties)]
                .into_iter()
                .collect(),
        );
    }
    let many: serde_json::Map<_, _> = (0..65)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"type": "string", "x-mcp-header": format!("H{n}")}),
            )
        })
        .collect();

    assert_eq!(param_headers(&deep).unwrap()[0].path.len(), 500);
    assert_eq!(
        param_headers(&json!({"properties": many})),
        Err(InvalidParamHeader::TooMany)
    );
}
