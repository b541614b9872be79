//! Schema validation, as settings of the server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use turnbuckle_server::{Context, InvalidTool, Server, Tool, ToolError, ToolResult};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{LEGACY, Peer};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    #[schemars(length(min = 1, max = 20))]
    city: String,
    #[schemars(regex(pattern = "^[A-Z]{3}$"))]
    airport: Option<String>,
    #[serde(default)]
    legs: Vec<Leg>,
}

#[derive(Deserialize, JsonSchema)]
struct Leg {
    #[schemars(range(min = 1, max = 30))]
    days: u8,
}

async fn plan(trip: Trip) -> Result<String, ToolError> {
    let days: u32 = trip.legs.iter().map(|leg| u32::from(leg.days)).sum();
    let airport = trip.airport.unwrap_or_default();
    Ok(format!("{days} days in {}{airport}", trip.city))
}

async fn count(arguments: Map<String, Value>, _: Context) -> Result<String, ToolError> {
    Ok(arguments.len().to_string())
}

fn server() -> Server {
    let by_hand = json!({
        "type": "object",
        "properties": { "mode": { "enum": ["fast", "slow"] }, "tags": { "type": "array", "items": { "type": "string" } } },
        "required": ["mode"],
        "additionalProperties": false
    });
    Server::new("checks", "1")
        .validate_input(true)
        .tool(Tool::new("plan", plan))
        .tool(Tool::blocking("plan_blocking", |trip: Trip| Ok(trip.city)))
        .tool(Tool::raw("count", by_hand, count))
}

/// The text of a result, and whether it is an error.
fn text_and_error(response: &Value) -> (&str, bool) {
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    let is_error = result["isError"].as_bool().unwrap_or(false);
    (
        text.unwrap_or_else(|| panic!("no text in {response}")),
        is_error,
    )
}

#[tokio::test]
async fn schemars_attributes_are_enforced_in_every_revision() {
    req!(
        "tools.security.validate-inputs",
        "tools.error.input-validation"
    );
    let wrong = json!({ "city": "Oslo", "legs": [{ "days": 1 }, { "days": 31 }] });
    let mistake = "invalid arguments: `arguments.legs[1].days`: invalid value: number `31`, expected at most 30";

    for revision in LEGACY {
        let mut peer = Peer::initialized(server(), revision, json!({})).await;
        let response = peer.call_tool("plan", wrong.clone()).await;
        assert_eq!(text_and_error(&response), (mistake, true), "{revision}");
    }
    let mut peer = Peer::new(server());
    let params = json!({ "name": "plan", "arguments": wrong });
    let response = peer.call_modern("tools/call", params).await;
    assert_eq!(text_and_error(&response), (mistake, true));
}

#[tokio::test]
async fn valid_arguments_reach_the_handler() {
    let mut peer = Peer::initialized(server(), "2025-06-18", json!({})).await;

    let trip = json!({ "city": "Oslo", "airport": "OSL", "legs": [{ "days": 30 }] });
    let response = peer.call_tool("plan", trip).await;
    assert_eq!(text_and_error(&response), ("30 days in OsloOSL", false));

    let response = peer
        .call_tool("count", json!({ "mode": "fast", "tags": [] }))
        .await;
    assert_eq!(text_and_error(&response), ("2", false));
}

#[tokio::test]
async fn lengths_and_patterns_are_enforced() {
    let mut peer = Peer::initialized(server(), "2025-11-25", json!({})).await;
    for (tool, trip, place) in [
        ("plan", json!({ "city": "" }), "`arguments.city`"),
        (
            "plan",
            json!({ "city": "Oslo", "airport": "osl" }),
            "`arguments.airport`",
        ),
        ("plan_blocking", json!({ "city": "" }), "`arguments.city`"),
    ] {
        let response = peer.call_tool(tool, trip).await;
        let (text, is_error) = text_and_error(&response);
        assert!(is_error && text.contains(place), "{text}");
    }
}

#[tokio::test]
async fn a_manual_schema_is_enforced() {
    req!("tools.security.validate-inputs");
    let mut peer = Peer::initialized(server(), "2025-11-25", json!({})).await;
    for (arguments, mistake) in [
        (json!({}), "`arguments`: missing field `mode`"),
        (
            json!({ "mode": "idle" }),
            "`arguments.mode`: invalid value: string \"idle\", expected \"fast\" or \"slow\"",
        ),
        (
            json!({ "mode": "fast", "tags": ["a", 1] }),
            "`arguments.tags[1]`: invalid type: number `1`, expected string",
        ),
        (
            json!({ "mode": "fast", "speed": 1 }),
            "`arguments`: unknown field `speed`",
        ),
    ] {
        let response = peer.call_tool("count", arguments).await;
        let (text, is_error) = text_and_error(&response);
        assert!(is_error);
        assert_eq!(text.strip_prefix("invalid arguments: "), Some(mistake));
    }
}

#[test]
#[should_panic(expected = "the input schema of `far` cannot be enforced: unresolved reference")]
fn a_schema_with_a_remote_reference_is_rejected_at_registration() {
    req!("schema.ref.no-network", "schema.ref.unresolved-reject");
    let schema = json!({ "properties": { "a": { "$ref": "https://example.com/schema.json" } } });

    let _ = Server::new("checks", "1")
        .validate_input(true)
        .tool(Tool::raw("far", schema, count));
}

#[test]
#[should_panic(expected = "the input schema of `far` cannot be enforced")]
fn a_tool_added_before_the_setting_is_checked_too() {
    let schema = json!({ "properties": { "a": { "$ref": "https://example.com/schema.json" } } });

    let _ = Server::new("checks", "1")
        .tool(Tool::raw("far", schema, count))
        .validate_input(true);
}

#[test]
fn a_tool_from_outside_is_rejected_with_an_error() {
    let schema = json!({ "properties": { "a": { "$ref": "https://example.com/schema.json" } } });
    let far = || Tool::raw("far", schema.clone(), count);
    let server = Server::new("checks", "1").validate_input(true);

    let error = server.try_add_tool(far()).unwrap_err();
    assert!(matches!(error, InvalidTool::Schema { which: "input", .. }));
    assert_eq!(server.try_tool(far()).unwrap_err(), error);
}

#[test]
fn a_setting_that_a_tool_violates_is_an_error() {
    let schema = json!({ "properties": { "a": { "$ref": "https://example.com/schema.json" } } });
    let far = Tool::raw("far", schema.clone(), count).output_schema(schema);
    let server = || Server::new("checks", "1").tool(far.clone());

    let input = server().try_validate_input(true).unwrap_err();
    let output = server().try_validate_output(true).unwrap_err();

    assert!(matches!(input, InvalidTool::Schema { which: "input", .. }));
    assert!(matches!(
        output,
        InvalidTool::Schema {
            which: "output",
            ..
        }
    ));
    assert!(server().try_validate_input(false).is_ok());
}

#[tokio::test]
async fn the_setting_of_the_outer_server_counts_for_mounted_tools() {
    let inner = Server::new("inner", "1").tool(Tool::new("plan", plan));
    let outer = Server::new("outer", "1")
        .validate_input(true)
        .mount("trips", inner.clone());
    let wrong = json!({ "city": "" });

    let mut peer = Peer::initialized(outer, "2025-11-25", json!({})).await;
    let answer = peer.call_tool("trips_plan", wrong.clone()).await;
    assert!(text_and_error(&answer).1, "{answer}");

    let mut peer = Peer::initialized(inner, "2025-11-25", json!({})).await;
    let answer = peer.call_tool("plan", wrong).await;
    assert!(!text_and_error(&answer).1, "{answer}");
}

#[test]
#[should_panic(expected = "the output schema of `odd` cannot be enforced: at `/type`")]
fn an_invalid_output_schema_is_rejected_at_registration() {
    req!("schema.valid");
    let odd = Tool::new("odd", async || Ok(ToolResult::empty()))
        .output_schema(json!({ "type": "thing" }));
    let _ = Server::new("checks", "1").validate_output(true).tool(odd);
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    #[schemars(range(min = -90, max = 60))]
    celsius: i32,
}

/// Tools with valid and invalid results.
fn promising() -> Server {
    let object = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let returns = |name: &str, output: ToolResult| {
        Tool::new(name, move || {
            let output = output.clone();
            async move { Ok(output) }
        })
        .output_schema(object.clone())
    };
    Server::new("promises", "1")
        .validate_output(true)
        .tool(returns("kept", ToolResult::structured(json!({ "n": 1 }))))
        .tool(returns(
            "broken",
            ToolResult::structured(json!({ "n": "secret" })),
        ))
        .tool(returns("forgotten", ToolResult::text("secret")))
        .tool(returns("failed", ToolResult::error("no luck")))
        .tool(Tool::new("hot", async || Ok(Weather { celsius: 400 })))
        .tool(Tool::new("nothing", async || Ok(None::<Weather>)))
}

#[tokio::test]
async fn a_result_that_violates_its_schema_is_a_tool_failure() {
    req!("tools.output.conform");
    let mut peer = Peer::initialized(promising(), "2025-11-25", json!({})).await;
    for tool in ["broken", "forgotten", "hot"] {
        let response = peer.call_tool(tool, json!({})).await;
        let (text, is_error) = text_and_error(&response);
        assert!(is_error, "{response}");
        assert!(text.contains("log for incident"), "{text}");
        assert!(!response.to_string().contains("secret"), "{response}");
        assert_eq!(response["result"].get("structuredContent"), None);
    }
}

#[tokio::test]
async fn a_result_that_matches_its_schema_is_sent() {
    req!("tools.output.conform");
    let mut peer = Peer::initialized(promising(), "2025-11-25", json!({})).await;

    let kept = peer.call_tool("kept", json!({})).await;
    assert_eq!(kept["result"]["structuredContent"], json!({ "n": 1 }));

    let failed = peer.call_tool("failed", json!({})).await;
    assert_eq!(
        text_and_error(&failed),
        ("no luck", true),
        "an error promises nothing"
    );

    let nothing = peer.call_tool("nothing", json!({})).await;
    assert_ne!(nothing["result"]["isError"], true, "{nothing}");
}
