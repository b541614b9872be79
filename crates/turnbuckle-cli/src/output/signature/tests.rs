use serde_json::json;

use super::*;

fn tool(input: Value, output: Option<Value>) -> Tool {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let tool = Tool::new("forecast", object(input));
    match output {
        Some(output) => tool.output_schema(object(output)),
        None => tool,
    }
}

fn shown(input: Value) -> String {
    style::strip(&for_tool(&tool(input, None), 200))
}

#[test]
fn a_tool_reads_like_a_function() {
    let tool = tool(
        json!({
            "type": "object",
            "properties": {
                "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3},
                "city": {"type": "string"},
            },
            "required": ["city"],
        }),
        Some(json!({
            "type": "object",
            "properties": {"summary": {"type": "string"}, "high": {"type": "number"}},
            "required": ["summary", "high"],
        })),
    );

    insta::assert_snapshot!(
        style::strip(&for_tool(&tool, 100)),
        @"forecast(city: string, days?: integer 1..7 = 3) -> {summary: string, high: number}"
    );
    insta::assert_snapshot!(style::strip(&for_tool(&tool, 60)), @r"
    forecast(
        city: string,
        days?: integer 1..7 = 3,
    ) -> {summary: string, high: number}
    ");
}

#[test]
fn each_schema_type_has_its_text() {
    insta::assert_snapshot!(
        shown(json!({"properties": {
            "a": {"enum": ["x", "y", 3]},
            "b": {"type": "array", "items": {"type": "string"}},
            "c": {"type": "array", "items": {"enum": ["x", "y"]}},
            "d": {"type": ["string", "null"]},
            "e": {"anyOf": [{"type": "integer"}, {"type": "string", "format": "date"}]},
            "f": {"type": "number", "exclusiveMinimum": 0},
            "g": {"const": true},
            "h": {"type": "object", "additionalProperties": {"type": "number"}},
            "i": {},
            "j": false,
            "k": {"type": "object"},
        }})),
        @r#"forecast(a?: "x" | "y" | 3, b?: string[], c?: ("x" | "y")[], d?: string | null, e?: integer | string date, f?: number >0.., g?: true, h?: {[key]: number}, i?: any, j?: never, k?: object)"#
    );
}

#[test]
fn only_local_references_are_followed() {
    insta::assert_snapshot!(
        shown(json!({
            "properties": {
                "place": {"$ref": "#/$defs/Place"},
                "tree": {"$ref": "#/$defs/Tree"},
                "far": {"$ref": "https://example.com/schemas/Far.json"},
                "lost": {"$ref": "#/$defs/Lost"},
                "circle": {"$ref": "#/$defs/Circle"},
            },
            "$defs": {
                "Place": {"type": "object", "properties": {"city": {"type": "string"}}},
                "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
                "Circle": {"$ref": "#/$defs/Circle"},
            },
        })),
        @"forecast(place?: {city?: string}, tree?: {left?: {left?: {…}}}, far?: Far.json, lost?: Lost, circle?: Circle)"
    );
}

#[test]
fn an_endlessly_recursive_schema_stays_short() {
    let wide: serde_json::Map<_, _> = (0..1000)
        .map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/Wide"})))
        .collect();
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/Wide"}}, "$defs": {"Wide": {"properties": wide}}});

    let text = shown(schema);

    assert!(text.len() < 10_000, "{}", text.len());
}

#[test]
fn names_of_a_peer_cannot_act_on_the_terminal() {
    insta::assert_snapshot!(
        shown(json!({"properties": {"a\u{1b}[2J": {"enum": ["\u{202e}x"]}}})),
        @r#"forecast(a\u{1b}[2J?: "\u{202e}x")"#
    );
}

#[test]
fn a_prompt_reads_like_a_function_too() {
    use turnbuckle_protocol::types::PromptArgument;
    let prompt = Prompt::new("review").arguments(vec![
        PromptArgument::new("code").required(true),
        PromptArgument::new("tone"),
    ]);

    assert_eq!(
        style::strip(&for_prompt(&prompt, 80)),
        "review(code, tone?)"
    );
}

#[test]
fn a_list_of_alternatives_has_them_in_parentheses() {
    let a = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let list = json!({"type": "array", "items": {"anyOf": [a, a]}});
    let plain = json!({"type": "array", "items": a});

    let input = json!({"properties": {"list": list, "plain": plain}});

    insta::assert_snapshot!(
        shown(input),
        @"forecast(list?: ({…} | {…})[], plain?: {a?: string}[])"
    );
}
