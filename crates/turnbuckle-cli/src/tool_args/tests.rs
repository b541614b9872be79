use serde_json::json;

use super::*;

fn schema() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "scale": {"type": "number"},
            "loud": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "counts": {"type": "array", "items": {"type": "integer"}},
            "unit": {"enum": ["C", "F", 1]},
            "maybe": {"type": ["integer", "null"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "optional": {"anyOf": [{"$ref": "#/$defs/Days"}, {"type": "null"}]},
            "list": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "where": {"type": "object"},
            "wrapped": {"allOf": [{"$ref": "#/$defs/Days"}], "default": 1},
            "some": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "endless": {"type": "array", "items": {"$ref": "#/properties/endless"}},
            "free": {},
        },
        "additionalProperties": false,
        "$defs": {"Days": {"type": "integer"}},
    });
    schema.as_object().cloned().unwrap()
}

fn arguments(
    words: &[String],
    defaults: JsonObject,
    schema: &JsonObject,
) -> Result<JsonObject, ToolArgError> {
    tool_arguments(words, defaults, schema, UnknownArguments::Refuse)
}

fn read(words: &[&str]) -> Result<Value, ToolArgError> {
    let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
    arguments(&words, JsonObject::new(), &schema()).map(Value::Object)
}

fn problem(words: &[&str]) -> String {
    read(words).unwrap_err().to_string()
}

#[test]
fn values_are_typed_by_the_schema() {
    let read = read(&[
        "city=Oslo = great",
        "days=3",
        "scale=0.5",
        "loud=true",
        "tags=a, b",
        "counts=1,2",
        "unit=1",
        "maybe=null",
        "either=7",
        "optional=3",
        "list=1,2",
        r#"where={"lat": 1}"#,
        "free=5",
    ]);

    assert_eq!(
        read.unwrap(),
        json!({
            "city": "Oslo = great", "days": 3, "scale": 0.5, "loud": true, "tags": ["a", "b"], "counts": [1, 2],
            "unit": 1, "maybe": null, "either": "7", "optional": 3, "list": [1, 2], "where": {"lat": 1}, "free": "5",
        })
    );
}

#[test]
fn a_repeated_key_makes_a_list_with_commas_kept() {
    assert_eq!(
        read(&["tags=a,b", "tags=c"]).unwrap(),
        json!({"tags": ["a,b", "c"]})
    );
    assert_eq!(
        read(&["counts=1", "counts:=2"]).unwrap(),
        json!({"counts": [1, 2]})
    );
    assert_eq!(read(&["tags="]).unwrap(), json!({"tags": []}));
    assert_eq!(read(&[r#"tags=["x"]"#]).unwrap(), json!({"tags": ["x"]}));
    insta::assert_snapshot!(problem(&["days=1", "days=2"]), @"`days` is given more than once, but is not a list");
}

#[test]
fn json_is_passed_unchanged() {
    assert_eq!(
        read(&["days:=\"three\"", "free:=[1,{}]"]).unwrap(),
        json!({"days": "three", "free": [1, {}]})
    );
}

#[test]
fn large_integers_stay_exact() {
    assert_eq!(
        read(&["days=18446744073709551615"]).unwrap(),
        json!({"days": u64::MAX})
    );
    assert_eq!(
        read(&["scale=9007199254740993"]).unwrap(),
        json!({"scale": 9007199254740993u64})
    );
}

#[test]
fn an_error_names_the_key_and_what_is_expected() {
    insta::assert_snapshot!(problem(&["days=three"]), @"invalid value `three` for `days`: expected integer");
    insta::assert_snapshot!(problem(&["days=1.5"]), @"invalid value `1.5` for `days`: expected integer");
    insta::assert_snapshot!(problem(&["loud=yes"]), @"invalid value `yes` for `loud`: expected boolean");
    insta::assert_snapshot!(problem(&["unit=K"]), @r#"invalid value `K` for `unit`: expected "C" | "F" | 1"#);
    insta::assert_snapshot!(problem(&["counts=1,x"]), @"invalid value `1,x` for `counts`: expected integer[]");
    insta::assert_snapshot!(problem(&["scale=NaN"]), @"invalid value `NaN` for `scale`: expected number");
    insta::assert_snapshot!(problem(&["free:=[1"]), @"invalid JSON for `free`: EOF while parsing a list at line 1 column 2");
    insta::assert_snapshot!(problem(&["Oslo"]), @"invalid argument `Oslo`: expected `key=value` or `key:=json`");
    insta::assert_snapshot!(problem(&["=x"]), @"invalid argument `=x`: expected `key=value` or `key:=json`");
    insta::assert_snapshot!(problem(&["town=Oslo"]), @"unknown argument `town`: expected one of `city`, `days`, `scale`, `loud`, `tags`, `counts`, `unit`, `maybe`, `either`, `optional`, `list`, `where`, `wrapped`, `some`, `matrix`, `endless`, `free`");
}

#[test]
fn pairs_override_the_args_object() {
    let defaults = json!({"city": "Bergen", "days": 1})
        .as_object()
        .cloned()
        .unwrap();

    let merged = arguments(&["days=2".to_owned()], defaults, &schema()).unwrap();

    assert_eq!(Value::Object(merged), json!({"city": "Bergen", "days": 2}));
}

#[test]
fn the_args_object_is_read_from_text_file_or_stdin() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), r#"{"a": 2}"#).unwrap();
    let read = |text: &str| read_args_object(text, folder.path(), &br#"{"a": 3}"#[..]);

    assert_eq!(read(r#"{"a": 1}"#).unwrap()["a"], 1);
    assert_eq!(read("@a.json").unwrap()["a"], 2);
    assert_eq!(read("-").unwrap()["a"], 3);
    assert_eq!(
        read("[1]").unwrap_err().to_string(),
        "`--args` is not a JSON object"
    );
    insta::assert_snapshot!(read("{").unwrap_err(), @"`--args` is not a JSON object: EOF while parsing an object at line 1 column 1");
    assert!(
        read("@b.json")
            .unwrap_err()
            .to_string()
            .starts_with("cannot read `--args` from b.json")
    );
}

#[test]
fn arguments_of_prompts_are_text() {
    assert_eq!(
        text_arguments(&["a=1=2".to_owned()]).unwrap(),
        [("a".to_owned(), "1=2".to_owned())]
    );
    assert!(text_arguments(&["a".to_owned()]).is_err());
}

#[test]
fn lists_in_lists_are_json() {
    let nested = json!({"matrix": [[1, 2], [3]], "endless": [[[]]]});
    assert_eq!(read(&["matrix=[[1,2],[3]]", "endless=[[[]]]"]), Ok(nested));
    assert_eq!(
        problem(&["matrix=1,2"]),
        "invalid value `1,2` for `matrix`: expected number[][]"
    );
    assert!(read(&["endless=1"]).is_err());
}

#[test]
fn alternatives_apply_to_items_of_a_comma_list() {
    let typed = json!({"some": [1, null]});
    assert_eq!(read(&["some=1,null"]), Ok(typed.clone()));
    assert_eq!(read(&["some=1", "some=null"]), Ok(typed));
}

#[test]
fn a_single_part_of_all_of_is_used() {
    assert_eq!(read(&["wrapped=7"]), Ok(json!({"wrapped": 7})));
}

#[test]
fn a_list_can_be_long() {
    let word = format!("counts={}", vec!["7"; 5000].join(","));

    assert_eq!(read(&[&word]), Ok(json!({"counts": vec![7; 5000]})));
}

#[test]
fn an_endlessly_recursive_schema_is_not_followed() {
    let part = |at: usize| {
        let parts =
            (0..60).map(|step| json!({"$ref": format!("#/properties/p{}", (at + step) % 60)}));
        let parts: Vec<_> = parts.collect();
        (format!("p{at}"), json!({"type": "integer", "anyOf": parts}))
    };
    let properties: JsonObject = (0..60).map(part).collect();
    let schema = json!({"properties": properties});

    let read = arguments(
        &["p1=x".to_owned()],
        JsonObject::new(),
        schema.as_object().unwrap(),
    );

    assert!(
        matches!(read, Err(ToolArgError::WrongType { .. })),
        "{read:?}"
    );
}

/// Returns the outcome for the argument `project` and a schema with the property `project_path`.
fn with_unknown_key(members: &Value, unknown: UnknownArguments) -> Result<Value, ToolArgError> {
    let mut schema = json!({"type": "object", "properties": {"project_path": {"type": "string"}}});
    let members = members.as_object().cloned().unwrap();
    schema.as_object_mut().unwrap().extend(members);
    let defaults = json!({"project": "/a"}).as_object().cloned().unwrap();
    tool_arguments(&[], defaults, schema.as_object().unwrap(), unknown).map(Value::Object)
}

#[test]
fn a_key_that_the_schema_does_not_have_is_refused_with_the_nearest_one() {
    for members in [json!({}), json!({"additionalProperties": false})] {
        let error = with_unknown_key(&members, UnknownArguments::Refuse).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown argument `project`: did you mean `project_path`? The tool has `project_path`"
        );
        let sent = with_unknown_key(&members, UnknownArguments::Send);
        assert_eq!(sent, Ok(json!({"project": "/a"})));
    }
}

#[test]
fn a_schema_can_allow_other_keys() {
    for members in [
        json!({"additionalProperties": true}),
        json!({"additionalProperties": {"type": "string"}}),
        json!({"patternProperties": {"^pro": {}}}),
        json!({"anyOf": [{"properties": {"project": {}}}]}),
        json!({"properties": null}),
    ] {
        let sent = with_unknown_key(&members, UnknownArguments::Refuse);
        assert!(sent.is_ok(), "{members}");
    }
}
