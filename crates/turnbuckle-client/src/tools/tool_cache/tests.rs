#![expect(
    clippy::needless_pass_by_value,
    reason = "tests pass `json!` values directly"
)]
use serde_json::json;
use turnbuckle_protocol::types::JsonObject;
use turnbuckle_spec_coverage::req;

use crate::tools::tool_cache::*;

const MODERN_HTTP: ToolPolicy = ToolPolicy {
    param_headers_sent: true,
    validate_output: true,
    reissue_lost_requests: true,
};
const ELSEWHERE: ToolPolicy = ToolPolicy {
    param_headers_sent: false,
    validate_output: true,
    reissue_lost_requests: false,
};

fn tool(name: &str, schema: Value) -> Tool {
    let tool = json!({ "name": name, "inputSchema": schema });
    serde_json::from_value(tool).unwrap()
}

fn marked(name: &str, header: Value) -> Tool {
    let city = json!({ "type": "string", "x-mcp-header": header });
    tool(
        name,
        json!({ "type": "object", "properties": { "city": city } }),
    )
}

fn headers_of(state: &ToolCache, name: &str) -> Vec<String> {
    let tool = state.get(name);
    tool.map_or_else(Vec::new, |tool| {
        tool.param_headers
            .iter()
            .map(|mark| mark.header.clone())
            .collect()
    })
}

#[test]
fn only_a_tool_with_an_invalid_param_header_is_left_out() {
    req!("http.param.reject-tool", "http.param.reject-exclude");
    let state = ToolCache::default();
    let plain = tool("plain", json!({ "type": "object" }));
    let mut page = vec![
        marked("first", json!("City")),
        marked("bad", json!("not a token")),
        marked("worse", json!(7)),
        plain,
    ];

    let unusable = state.insert_all(&mut page, MODERN_HTTP);

    let left: Vec<_> = page.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(left, ["first", "plain"]);
    let names: Vec<_> = unusable.iter().map(|it| it.tool.as_str()).collect();
    assert_eq!(names, ["bad", "worse"]);
    assert!(unusable[0].error.to_string().contains("/properties/city"));
    assert_eq!(headers_of(&state, "first"), ["City"]);
    assert!(state.get("bad").is_none());
    assert!(state.get("plain").is_none(), "nothing to remember");
}

#[test]
fn without_param_headers_every_tool_is_usable() {
    req!("http.param.other-transport");
    let state = ToolCache::default();
    let mut page = vec![marked("good", json!("City")), marked("bad", json!(""))];

    assert!(state.insert_all(&mut page, ELSEWHERE).is_empty());

    assert_eq!(page.len(), 2);
    assert!(headers_of(&state, "good").is_empty());
}

#[test]
fn the_latest_definition_counts() {
    req!("http.param.latest-schema");
    let state = ToolCache::default();

    state.insert_all(&mut vec![marked("a", json!("One"))], MODERN_HTTP);
    assert_eq!(headers_of(&state, "a"), ["One"]);
    state.insert_all(&mut vec![marked("a", json!("Two"))], MODERN_HTTP);
    assert_eq!(headers_of(&state, "a"), ["Two"]);
    // Neither a definition without parameter headers nor an invalid one keeps the old headers.
    state.insert_all(&mut vec![tool("a", json!({}))], MODERN_HTTP);
    assert!(headers_of(&state, "a").is_empty());
    state.insert_all(&mut vec![marked("a", json!("Two"))], MODERN_HTTP);
    state.insert_all(&mut vec![marked("a", json!(""))], MODERN_HTTP);
    assert!(headers_of(&state, "a").is_empty());
}

#[test]
fn tool_names_are_case_sensitive() {
    req!("tools.name.case-sensitive");
    let state = ToolCache::default();
    let mut page = vec![marked("a", json!("Small")), marked("A", json!("Large"))];

    state.insert_all(&mut page, MODERN_HTTP);

    assert_eq!(headers_of(&state, "a"), ["Small"]);
    assert_eq!(headers_of(&state, "A"), ["Large"]);
}

#[test]
fn the_tool_cache_is_bounded() {
    let state = ToolCache::default();
    let long = "x".repeat(100_000);
    for number in 0..400 {
        let mut page = vec![marked(&number.to_string(), json!(long))];
        state.insert_all(&mut page, MODERN_HTTP);
    }
    let bytes = state.state.read().unwrap().bytes;
    assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES / 2, "{bytes}");

    let state = ToolCache::default();
    for number in 0..MAX_TOOLS + 10 {
        let mut page = vec![marked(&number.to_string(), json!("A"))];
        state.insert_all(&mut page, MODERN_HTTP);
    }
    assert!(state.get("0").is_none());
    assert!(state.get("10").is_some());
    let inside = state.state.read().unwrap();
    assert_eq!(
        (inside.by_name.len(), inside.order.len()),
        (MAX_TOOLS, MAX_TOOLS)
    );
}

#[test]
fn names_count_toward_the_size() {
    let state = ToolCache::default();
    let long = "x".repeat(1_000_000);
    for number in 0..100 {
        let mut page = vec![marked(&format!("{long}{number}"), json!("A"))];
        state.insert_all(&mut page, MODERN_HTTP);
    }

    let inside = state.state.read().unwrap();
    let names: usize = inside.by_name.keys().map(String::len).sum();
    assert!(names <= MAX_BYTES, "{names}");
    assert_eq!(inside.by_name.len(), inside.order.len());
}

#[test]
fn a_change_invalidates_everything_but_param_headers() {
    let state = ToolCache::default();
    let mut both = marked("both", json!("City"));
    both.output_schema = Some(JsonObject::new());
    let mut promising = tool("promising", json!({ "type": "object" }));
    promising.output_schema = Some(JsonObject::new());
    state.insert_all(&mut vec![promising, both], MODERN_HTTP);

    state.invalidate_output_schemas();

    assert_eq!(headers_of(&state, "both"), ["City"]);
    assert!(state.get("both").unwrap().output_schema.is_none());
    assert!(state.get("promising").is_none());
    let inside = state.state.read().unwrap();
    assert_eq!((inside.by_name.len(), inside.order.len()), (1, 1));
}

#[test]
fn a_call_is_repeatable_only_if_its_tool_was_listed_so_and_has_not_changed_since() {
    let annotated = |name: &str, annotations: Value| -> Tool {
        let schema = json!({ "type": "object" });
        let tool = json!({ "name": name, "inputSchema": schema, "annotations": annotations });
        serde_json::from_value(tool).unwrap()
    };
    let mut tools = vec![
        annotated("reads", json!({ "readOnlyHint": true })),
        annotated("sets", json!({ "idempotentHint": true })),
        annotated(
            "adds",
            json!({ "readOnlyHint": false, "idempotentHint": false }),
        ),
        tool("unsaid", json!({ "type": "object" })),
    ];
    let names = ["reads", "sets", "adds", "unsaid", "unlisted"];
    let state = ToolCache::default();
    let repeatable = |state: &ToolCache| names.map(|name| state.is_repeatable(name));

    state.insert_all(&mut tools, ELSEWHERE);
    assert_eq!(repeatable(&state), [false; 5]);
    state.insert_all(&mut tools, MODERN_HTTP);
    assert_eq!(repeatable(&state), [true, true, false, false, false]);
    state.invalidate_output_schemas();
    assert_eq!(repeatable(&state), [false; 5]);
}
