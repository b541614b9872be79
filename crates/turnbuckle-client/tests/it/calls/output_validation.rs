//! Validation of tool output against output schemas.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientBuilder, StructuredError};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MODERN, MockServer};

/// The revisions with output schemas.
const WITH_OUTPUT_SCHEMA: [&str; 3] = ["2025-06-18", "2025-11-25", MODERN];

fn forecast_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "high": { "type": "integer", "maximum": 60 }, "days": { "type": "array" } },
        "required": ["high"],
    })
}

/// A client that validates output.
fn validating() -> ClientBuilder {
    Client::builder("test", "1").validate_output(true)
}

/// A server with one tool that has this output schema.
fn server_with_schema(revision: &str, output_schema: &Value) -> MockServer {
    let server = MockServer::for_revision(revision);
    let tool = json!({
        "name": "forecast",
        "inputSchema": { "type": "object" },
        "outputSchema": output_schema,
    });
    server.respond("tools/list", json!({ "tools": [tool] }));
    server
}

async fn forecast(client: &Client) -> Result<Value, CallError> {
    let output = client.call_tool("forecast", json!({})).await?;
    Ok(output.structured_value().cloned().unwrap_or_default())
}

/// Returns the reason why an output is invalid.
fn reason(outcome: Result<Value, CallError>) -> String {
    match outcome {
        Err(CallError::InvalidOutput { tool, reason, .. }) => {
            assert_eq!(tool, "forecast");
            reason
        }
        other => panic!("it should be an invalid output: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_output_is_an_error_that_names_the_location() {
    req!(
        "tools.output.client-validate",
        "tools.client.validate-results"
    );
    for revision in WITH_OUTPUT_SCHEMA {
        let server = server_with_schema(revision, &forecast_schema());
        server.respond_in_order(
            "tools/call",
            [
                json!({ "content": [], "structuredContent": { "high": 7 } }),
                json!({ "content": [], "structuredContent": { "high": "hot" } }),
                json!({ "content": [], "structuredContent": { "high": 61 } }),
                json!({ "content": [], "structuredContent": {} }),
                json!({ "content": [{ "type": "text", "text": "{\"high\":7}" }] }),
            ],
        );
        let client = server.connect_with(validating()).await;
        client.tools().all().await.unwrap();

        assert_eq!(forecast(&client).await.unwrap(), json!({ "high": 7 }));
        assert_eq!(
            reason(forecast(&client).await),
            "`structuredContent.high`: invalid type: string \"hot\", expected integer"
        );
        assert_eq!(
            reason(forecast(&client).await),
            "`structuredContent.high`: invalid value: number `61`, expected at most 60"
        );
        assert_eq!(
            reason(forecast(&client).await),
            "`structuredContent`: missing field `high`"
        );
        assert_eq!(
            reason(forecast(&client).await),
            "`structuredContent` is missing"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_output_is_part_of_the_error() {
    let server = server_with_schema(MODERN, &forecast_schema());
    let text = json!({ "type": "text", "text": "hot" });
    server.respond(
        "tools/call",
        json!({ "content": [text], "structuredContent": 7 }),
    );
    let client = server.connect_with(validating()).await;
    client.tools().all().await.unwrap();

    let error = client.call_tool("forecast", json!({})).await.unwrap_err();

    let CallError::InvalidOutput { output, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(output.text(), "hot");
    assert_eq!(output.structured_value(), Some(&json!(7)));
}

#[tokio::test(start_paused = true)]
async fn an_error_result_is_not_validated() {
    req!("tools.error.to-model");
    for revision in WITH_OUTPUT_SCHEMA {
        let server = server_with_schema(revision, &forecast_schema());
        let text = json!({ "type": "text", "text": "no such city" });
        server.respond("tools/call", json!({ "content": [text], "isError": true }));
        let client = server.connect_with(validating()).await;
        client.tools().all().await.unwrap();

        let output = client.call_tool("forecast", json!({})).await.unwrap();

        assert!(output.is_error());
        assert_eq!(output.text(), "no such city");
        assert!(matches!(
            output.structured::<Value>(),
            Err(StructuredError::Missing)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn output_of_an_unlisted_tool_is_not_validated() {
    for revision in EVERY {
        let server = server_with_schema(revision, &forecast_schema());
        server.respond(
            "tools/call",
            json!({ "content": [], "structuredContent": 7 }),
        );
        let client = server.connect_with(validating()).await;

        // The tools were not listed.
        client.call_tool("forecast", json!({})).await.unwrap();
        assert_eq!(server.count("tools/list"), 0, "{revision}");

        client.tools().all().await.unwrap();
        client.call_tool("another", json!({})).await.unwrap();
        // Older revisions lack output schemas, and ignore a member of that name.
        let checked = WITH_OUTPUT_SCHEMA.contains(&revision);
        assert_eq!(forecast(&client).await.is_err(), checked, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn since_2026_07_28_output_may_be_any_json_value() {
    let server = server_with_schema(MODERN, &json!({ "type": ["array", "null"], "maxItems": 1 }));
    server.respond_in_order(
        "tools/call",
        [
            json!({ "content": [], "structuredContent": [1] }),
            json!({ "content": [], "structuredContent": null }),
            json!({ "content": [], "structuredContent": [1, 2] }),
        ],
    );
    let client = server.connect_with(validating()).await;
    client.tools().all().await.unwrap();

    assert_eq!(forecast(&client).await.unwrap(), json!([1]));
    assert_eq!(forecast(&client).await.unwrap(), Value::Null);
    assert!(reason(forecast(&client).await).contains("at most 1 item"));
}

#[tokio::test(start_paused = true)]
async fn an_output_schema_is_invalid_after_a_tool_change() {
    for revision in WITH_OUTPUT_SCHEMA {
        let server = server_with_schema(revision, &forecast_schema());
        server.respond(
            "tools/call",
            json!({ "content": [], "structuredContent": { "other": 1 } }),
        );
        let client = server.connect_with(validating()).await;
        client.tools().all().await.unwrap();
        assert!(forecast(&client).await.is_err());

        let changed = "notifications/tools/list_changed";
        server.notify(changed, json!({})).await;

        let output = forecast(&client).await.unwrap();
        assert_eq!(output, json!({ "other": 1 }), "{revision}");
        client.tools().all().await.unwrap();
        assert!(forecast(&client).await.is_err(), "what is listed binds");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_listing_replaces_the_output_schema() {
    let server = MockServer::modern();
    let tool = |schema: Value| {
        json!({ "tools": [{
            "name": "forecast", "inputSchema": { "type": "object" }, "outputSchema": schema,
        }] })
    };
    server.respond_in_order(
        "tools/list",
        [
            tool(json!({ "type": "string" })),
            tool(json!({ "type": "integer" })),
            json!({ "tools": [{ "name": "forecast", "inputSchema": { "type": "object" } }] }),
        ],
    );
    server.respond(
        "tools/call",
        json!({ "content": [], "structuredContent": "x" }),
    );
    let client = server.connect_with(validating()).await;

    client.tools().all().await.unwrap();
    assert!(forecast(&client).await.is_ok());
    client.tools().all().await.unwrap();
    assert!(forecast(&client).await.is_err());
    client.tools().all().await.unwrap();
    assert!(forecast(&client).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_unusable_output_schema_rejects_all_output() {
    req!(
        "tools.client.ref-rules",
        "schema.ref.no-network",
        "schema.ref.unresolved-reject",
        "schema.dialect.unsupported-error"
    );
    for (schema, expected) in [
        (
            json!({ "$ref": "http://127.0.0.1:9/never-fetched.json" }),
            "never-fetched.json",
        ),
        (json!({ "type": "text" }), "at `/type`"),
        (
            json!({ "$schema": "https://example.com/dialect" }),
            "https://example.com/dialect",
        ),
        (json!({ "$ref": "#" }), "refers to itself"),
    ] {
        let server = server_with_schema(MODERN, &schema);
        server.respond(
            "tools/call",
            json!({ "content": [], "structuredContent": {} }),
        );
        let client = server.connect_with(validating()).await;

        let listed = client.tools().all().await.unwrap();

        // The schema is returned unchanged.
        assert_eq!(listed[0].output_schema.as_ref(), schema.as_object());
        let reason = reason(forecast(&client).await);
        assert!(
            reason.starts_with("the output schema is invalid: "),
            "{reason}"
        );
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn an_expensive_output_schema_is_bounded() {
    req!("schema.bounds");
    let doubling: Value = (0..60)
        .map(|at| {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            (format!("d{at}"), json!({ "allOf": [next, next] }))
        })
        .chain([("d60".to_owned(), json!({ "type": "object" }))])
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut deep = json!({ "type": "object" });
    for _ in 0..45 {
        deep = json!({ "allOf": [deep] });
    }
    for schema in [
        json!({ "$ref": "#/$defs/d0", "$defs": doubling }),
        deep,
        json!({ "properties": { "a": { "pattern": "^(a+)+$" } } }),
        json!({ "properties": { "a": { "pattern": "^(?=(a+)+$)b" } } }),
        json!({ "properties": { "a": { "$ref": "#" } }, "additionalProperties": { "$ref": "#" } }),
    ] {
        let server = server_with_schema(MODERN, &schema);
        let hostile = json!({ "a": "a".repeat(50_000) + "!" });
        server.respond(
            "tools/call",
            json!({ "content": [], "structuredContent": hostile }),
        );
        let client = server.connect_with(validating()).await;
        client.tools().all().await.unwrap();
        let started = Instant::now();

        let _either = forecast(&client).await;

        assert!(started.elapsed() < Duration::from_secs(30), "{schema}");
    }
}
