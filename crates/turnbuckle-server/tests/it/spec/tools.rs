//! Tools, in every revision.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    vec,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_server::{Context, Server, Tool, ToolError, ToolResult};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, RevisionClient};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    days: u8,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    degrees: f64,
}

/// A string or another type.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Text(String),
    Number(i64),
}

fn server() -> Server {
    let any = Tool::raw(
        "raw",
        json!({ "title": "t" }),
        async |_: Value, _: Context| Ok("raw".to_owned()),
    );
    Server::new("tools", "1")
        .tool(Tool::new("trip", async |trip: Trip| {
            Ok(format!("{} days in {}", trip.days, trip.city))
        }))
        .tool(any)
        .tool(Tool::new("nothing", async || Ok(())))
        .tool(Tool::new("fails", async || {
            Err::<String, _>(ToolError::new("no luck today"))
        }))
        .tool(Tool::new("weather", async || Ok(Weather { degrees: 21.5 })))
        .tool(Tool::new("numbers", async || Ok(vec![1, 2])))
        .tool(Tool::new("text", async || {
            Ok(Either::Text("seven".to_owned()))
        }))
        .tool(Tool::new("number", async || Ok(Either::Number(7))))
        .tool(Tool::new("maybe", async || Ok(None::<i64>)))
        .tool(Tool::new("word", async || Ok(Some("word".to_owned()))))
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_listed_with_a_name_and_the_schema_of_an_object() {
    req!(
        "tools.list.shape",
        "tools.input-schema.object",
        "tools.input-schema.type-object"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let list = client.result("tools/list", json!({})).await;

        let tools = list["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 10);
        for tool in tools {
            assert!(tool["name"].is_string(), "{revision} {tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{revision} {tool}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_result_has_content() {
    req!("tools.result.content-array");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for (name, blocks) in [("nothing", 0), ("fails", 1), ("weather", 1), ("raw", 1)] {
            let result = client.tool(name, json!({})).await;

            let content = result["content"].as_array().unwrap();
            assert_eq!(content.len(), blocks, "{revision} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_result_and_an_unknown_tool_is_an_error() {
    req!("tools.error.in-result", "tools.error.unknown-tool");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let failed = client.tool("fails", json!({})).await;
        let unknown = client
            .code("tools/call", json!({ "name": "missing", "arguments": {} }))
            .await;

        assert_eq!(failed["isError"], true, "{revision}");
        assert_eq!(failed["content"][0]["text"], "no luck today");
        assert_eq!(unknown, -32602, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_the_wrong_type_are_a_result_that_names_them() {
    req!("tools.error.input-validation");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for (arguments, named) in [
            (json!({ "city": "Oslo", "days": "two" }), "arguments.days"),
            (json!({ "city": "Oslo", "days": 256 }), "arguments.days"),
            (json!({ "city": 7, "days": 1 }), "arguments.city"),
            (json!({ "city": "Oslo" }), "`days`"),
            (json!({}), "`city`"),
        ] {
            let result = client.tool("trip", arguments).await;

            assert_eq!(result["isError"], true, "{revision}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(named), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_an_output_schema_returns_structured_content_and_text() {
    req!("tools.output.conform", "tools.output.text-copy");
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let mut client = RevisionClient::new(revision, server()).await;
        let list = client.result("tools/list", json!({})).await;
        for tool in list["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let result = client
                .tool(name, json!({ "city": "Oslo", "days": 2 }))
                .await;

            let value = result.get("structuredContent");
            assert_eq!(
                value.is_some(),
                tool.get("outputSchema").is_some(),
                "{revision} {name}"
            );
            if let Some(value) = value {
                let text = result["content"][0]["text"].as_str().unwrap();
                assert_eq!(
                    serde_json::from_str::<Value>(text).unwrap(),
                    *value,
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_get_structured_content_only_as_objects() {
    req!(
        "tools.output-schema.root-object",
        "tools.output.structured-object"
    );
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = RevisionClient::new(revision, server()).await;
        let list = client.result("tools/list", json!({})).await;
        let with_schema: Vec<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|tool| tool.get("outputSchema").is_some())
            .collect();
        assert_eq!(with_schema.len(), 1, "{revision}");
        assert_eq!(with_schema[0]["outputSchema"]["type"], "object");

        for (name, text) in [
            ("weather", "{\"degrees\":21.5}"),
            ("numbers", "[1,2]"),
            ("number", "7"),
        ] {
            let result = client.tool(name, json!({})).await;
            assert_eq!(result["content"][0]["text"], text);
            let value = result.get("structuredContent");
            assert!(value.is_none_or(Value::is_object), "{revision} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_gets_structured_content_of_any_type() {
    req!("tools.output-schema.any", "tools.output.structured-any");
    let mut client = RevisionClient::new("2026-07-28", server()).await;
    let list = client.result("tools/list", json!({})).await;
    let schema = |name: &str| {
        let tools = list["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool.get("outputSchema").cloned()
    };

    assert_eq!(schema("numbers").unwrap()["type"], "array");
    for (name, value) in [
        ("numbers", json!([1, 2])),
        ("text", json!("seven")),
        ("number", json!(7)),
        ("maybe", json!(null)),
    ] {
        assert!(schema(name).is_some(), "{name}");
        let result = client.tool(name, json!({})).await;
        assert_eq!(result.get("structuredContent"), Some(&value), "{name}");
    }
    assert_eq!(schema("word"), None, "text is content");
}

#[tokio::test(start_paused = true)]
async fn names_differ_by_case_and_are_unique() {
    req!("tools.name.case-sensitive", "tools.name.unique");
    let says = |name: &str, text: &'static str| Tool::new(name, async move || Ok(text.to_owned()));
    for revision in ["2025-11-25", "2026-07-28"] {
        let server = Server::new("names", "1")
            .tool(says("read", "old"))
            .tool(says("Read", "large"))
            .tool(says("read", "small"));
        let mut client = RevisionClient::new(revision, server).await;

        let list = client.result("tools/list", json!({})).await;

        assert_eq!(list["tools"].as_array().unwrap().len(), 2);
        for (name, text) in [("read", "small"), ("Read", "large")] {
            let result = client.tool(name, json!({})).await;
            assert_eq!(result["content"][0]["text"], text);
        }
        assert_eq!(
            client.code("tools/call", json!({ "name": "READ" })).await,
            -32602
        );
    }
}

#[test]
fn an_invalid_tool_name_is_rejected_at_registration() {
    req!(
        "tools.name.length",
        "tools.name.charset",
        "tools.name.no-special",
        in: ["2025-11-25", "2026-07-28"]
    );
    let make = |name: &str| {
        let tool = || Tool::new(name, async || Ok(ToolResult::empty()));
        catch_unwind(AssertUnwindSafe(tool)).is_ok()
    };
    for name in ["a", "A-b_c.9", &"x".repeat(128)] {
        assert!(make(name), "{name}");
    }
    for name in ["", "a b", "a,b", "a/b", "ä", "a\n", "a@b", &"x".repeat(129)] {
        assert!(!make(name), "{name}");
    }
}

#[test]
fn a_param_header_that_cannot_be_sent_is_rejected_at_registration() {
    req!(
        "http.param.name.token",
        "http.param.name.unique",
        "http.param.name.non-empty",
        "http.param.name.no-control",
        "http.param.type.primitive",
        "http.param.path.static",
        "http.param.path.no-composition",
        in: ["2026-07-28"]
    );
    let make = |properties: Value| {
        let schema = json!({ "type": "object", "properties": properties });
        let tool = || {
            Tool::raw("t", schema, async |_: Value, _: Context| {
                Ok(ToolResult::empty())
            })
        };
        catch_unwind(AssertUnwindSafe(tool)).is_ok()
    };
    let marked = |kind: &str, mark: &str| json!({ "type": kind, "x-mcp-header": mark });

    for kind in ["string", "integer", "boolean"] {
        assert!(make(json!({ "a": marked(kind, "Region") })), "{kind}");
    }
    assert!(make(
        json!({ "a": { "type": "object", "properties": { "b": marked("string", "B") } } })
    ));
    for mark in ["", "a b", "a:b", "a\r\nb", "a\u{0}", "ä", "(a)"] {
        assert!(!make(json!({ "a": marked("string", mark) })), "{mark:?}");
    }
    for kind in ["number", "array", "object", "null"] {
        assert!(!make(json!({ "a": marked(kind, "A") })), "{kind}");
    }
    assert!(!make(
        json!({ "a": marked("string", "A"), "b": marked("string", "a") })
    ));
    for nested in [
        json!({ "type": "array", "items": marked("string", "A") }),
        json!({ "anyOf": [marked("string", "A")] }),
        json!({ "if": marked("string", "A") }),
        json!({ "type": "object", "additionalProperties": marked("string", "A") }),
        json!({ "$defs": { "d": marked("string", "A") }, "$ref": "#/properties/a/$defs/d" }),
    ] {
        assert!(!make(json!({ "a": nested })), "{nested}");
    }
}
