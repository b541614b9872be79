#![expect(
    clippy::needless_pass_by_value,
    reason = "so that a test says `json!` where it is needed"
)]

use serde_json::json;
use turnbuckle_ledger::req;
use turnbuckle_protocol::types::JsonObject;

use super::*;

const MODERN_HTTP: Uses = Uses {
    mirrors: true,
    promises: true,
    reissues: true,
};
const ELSEWHERE: Uses = Uses {
    mirrors: false,
    promises: true,
    reissues: false,
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

fn headers_of(known: &KnownTools, name: &str) -> Vec<String> {
    let tool = known.get(name);
    tool.map_or_else(Vec::new, |tool| {
        tool.marks.iter().map(|mark| mark.header.clone()).collect()
    })
}

#[test]
fn a_tool_with_a_bad_mark_is_left_out_alone() {
    req!("http.param.reject-tool", "http.param.reject-exclude");
    let known = KnownTools::default();
    let plain = tool("plain", json!({ "type": "object" }));
    let mut page = vec![
        marked("first", json!("City")),
        marked("bad", json!("not a token")),
        marked("worse", json!(7)),
        plain,
    ];

    let unusable = known.learn(&mut page, MODERN_HTTP);

    let left: Vec<_> = page.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(left, ["first", "plain"]);
    let names: Vec<_> = unusable.iter().map(|it| it.tool.as_str()).collect();
    assert_eq!(names, ["bad", "worse"]);
    assert!(unusable[0].error.to_string().contains("/properties/city"));
    assert_eq!(headers_of(&known, "first"), ["City"]);
    assert!(known.get("bad").is_none());
    assert!(known.get("plain").is_none(), "nothing to remember");
}

#[test]
fn where_nothing_is_mirrored_every_tool_stays() {
    req!("http.param.other-transport");
    let known = KnownTools::default();
    let mut page = vec![marked("good", json!("City")), marked("bad", json!(""))];

    assert!(known.learn(&mut page, ELSEWHERE).is_empty());

    assert_eq!(page.len(), 2);
    assert!(headers_of(&known, "good").is_empty());
}

#[test]
fn the_latest_definition_counts() {
    req!("http.param.latest-schema");
    let known = KnownTools::default();

    known.learn(&mut vec![marked("a", json!("One"))], MODERN_HTTP);
    assert_eq!(headers_of(&known, "a"), ["One"]);
    known.learn(&mut vec![marked("a", json!("Two"))], MODERN_HTTP);
    assert_eq!(headers_of(&known, "a"), ["Two"]);
    // Neither a definition without marks nor a bad one leaves the old marks behind.
    known.learn(&mut vec![tool("a", json!({}))], MODERN_HTTP);
    assert!(headers_of(&known, "a").is_empty());
    known.learn(&mut vec![marked("a", json!("Two"))], MODERN_HTTP);
    known.learn(&mut vec![marked("a", json!(""))], MODERN_HTTP);
    assert!(headers_of(&known, "a").is_empty());
}

#[test]
fn names_differ_by_case() {
    req!("tools.name.case-sensitive");
    let known = KnownTools::default();
    let mut page = vec![marked("a", json!("Small")), marked("A", json!("Large"))];

    known.learn(&mut page, MODERN_HTTP);

    assert_eq!(headers_of(&known, "a"), ["Small"]);
    assert_eq!(headers_of(&known, "A"), ["Large"]);
}

#[test]
fn what_is_remembered_has_bounds() {
    let known = KnownTools::default();
    let long = "x".repeat(100_000);
    for number in 0..400 {
        let mut page = vec![marked(&number.to_string(), json!(long))];
        known.learn(&mut page, MODERN_HTTP);
    }
    let bytes = known.known.read().unwrap().bytes;
    assert!(bytes <= BYTES && bytes > BYTES / 2, "{bytes}");

    let known = KnownTools::default();
    for number in 0..TOOLS + 10 {
        let mut page = vec![marked(&number.to_string(), json!("A"))];
        known.learn(&mut page, MODERN_HTTP);
    }
    assert!(known.get("0").is_none());
    assert!(known.get("10").is_some());
    let inside = known.known.read().unwrap();
    assert_eq!((inside.by_name.len(), inside.order.len()), (TOOLS, TOOLS));
}

#[test]
fn names_count_too() {
    let known = KnownTools::default();
    let long = "x".repeat(1_000_000);
    for number in 0..100 {
        let mut page = vec![marked(&format!("{long}{number}"), json!("A"))];
        known.learn(&mut page, MODERN_HTTP);
    }

    let inside = known.known.read().unwrap();
    let names: usize = inside.by_name.keys().map(String::len).sum();
    assert!(names <= BYTES, "{names}");
    assert_eq!(inside.by_name.len(), inside.order.len());
}

#[test]
fn a_change_leaves_the_marks_and_nothing_else() {
    let known = KnownTools::default();
    let mut both = marked("both", json!("City"));
    both.output_schema = Some(JsonObject::new());
    let mut promising = tool("promising", json!({ "type": "object" }));
    promising.output_schema = Some(JsonObject::new());
    known.learn(&mut vec![promising, both], MODERN_HTTP);

    known.void_promises();

    assert_eq!(headers_of(&known, "both"), ["City"]);
    assert!(known.get("both").unwrap().promise.is_none());
    assert!(known.get("promising").is_none());
    let inside = known.known.read().unwrap();
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
    let known = KnownTools::default();
    let repeatable = |known: &KnownTools| names.map(|name| known.is_repeatable(name));

    known.learn(&mut tools, ELSEWHERE);
    assert_eq!(repeatable(&known), [false; 5]);
    known.learn(&mut tools, MODERN_HTTP);
    assert_eq!(repeatable(&known), [true, true, false, false, false]);
    known.void_promises();
    assert_eq!(repeatable(&known), [false; 5]);
}
