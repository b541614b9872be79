//! The order of checks: a request with two errors gets the first.

use http::{HeaderMap, HeaderValue, Method, Request};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{Context, SamplingBuilder, Server, Tool, http::Http};

use crate::http::test_client::{
    HttpTestClient, HttpTestResponse, modern, modern_headers, server as plain,
};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the headers matter")]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

/// A server with a tool that has a parameter header and sends a client request.
fn server() -> Server {
    let query = Tool::new("query", async |_: Query, cx: Context| {
        Ok(cx.sample("s", SamplingBuilder::text("?")).await?.model)
    });
    plain().tool(query)
}

/// A request with modifications.
struct Draft {
    headers: HeaderMap,
    body: Value,
    /// Checked before the body.
    noise: String,
}

impl Draft {
    fn good() -> Self {
        let arguments = json!({ "region": "eu" });
        let mut body = modern(
            "tools/call",
            json!({ "name": "query", "arguments": arguments }),
        );
        *meta(&mut body, "clientCapabilities") = json!({ "sampling": {} });
        let builder = Request::builder()
            .header("host", "localhost:8080")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-param-region", "eu");
        let builder = modern_headers(builder, &body);
        Self {
            headers: builder.headers_ref().unwrap().clone(),
            body,
            noise: String::new(),
        }
    }

    fn set(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(name, HeaderValue::from_static(value));
    }

    async fn send(self) -> HttpTestResponse {
        let caller = HttpTestClient::with_options(Http::new(server()).body_limit(2_000));
        let mut builder = Request::builder().method(Method::POST).uri("/mcp");
        *builder.headers_mut().unwrap() = self.headers;
        let body = format!("{}{}", self.noise, self.body);
        caller.send(builder, body).await
    }
}

fn meta<'a>(body: &'a mut Value, name: &str) -> &'a mut Value {
    &mut body["params"]["_meta"][format!("io.modelcontextprotocol/{name}")]
}

type Spoil = fn(&mut Draft);

/// All checks in order, with the response to a violation.
const CHECKS: [(&str, Spoil, (u16, i64)); 14] = [
    ("Host", |it| it.set("host", "evil.example"), (403, -32600)),
    (
        "Origin",
        |it| it.set("origin", "https://evil.example"),
        (403, -32600),
    ),
    (
        "Content-Type",
        |it| it.set("content-type", "text/plain"),
        (415, -32600),
    ),
    ("Accept", |it| it.set("accept", "text/html"), (406, -32600)),
    ("size", |it| it.noise += &" ".repeat(3_000), (413, -32600)),
    ("JSON", |it| it.noise += "}", (400, -32700)),
    (
        "required _meta",
        |it| *meta(&mut it.body, "clientCapabilities") = Value::Null,
        (400, -32602),
    ),
    (
        "version header",
        |it| {
            let other = HeaderValue::from_static("x");
            it.headers.append("mcp-protocol-version", other);
        },
        (400, -32020),
    ),
    (
        "version",
        |it| {
            *meta(&mut it.body, "protocolVersion") = json!("2031-01-01");
            it.set("mcp-protocol-version", "2031-01-01");
        },
        (400, -32022),
    ),
    (
        "Mcp-Method",
        |it| drop(it.headers.remove("mcp-method")),
        (400, -32020),
    ),
    ("Mcp-Name", |it| it.set("mcp-name", "other"), (400, -32020)),
    (
        "log level",
        |it| *meta(&mut it.body, "logLevel") = json!("loud"),
        (400, -32602),
    ),
    (
        "parameter header",
        |it| it.set("mcp-param-region", "us"),
        (400, -32020),
    ),
    (
        "capability",
        |it| *meta(&mut it.body, "clientCapabilities") = json!({}),
        (400, -32021),
    ),
];

#[tokio::test]
async fn the_unmodified_request_is_valid() {
    let response = Draft::good().send().await.json().await;

    assert_eq!(
        response["result"]["resultType"], "input_required",
        "{response}"
    );
}

#[tokio::test]
async fn of_two_errors_the_first_check_is_reported() {
    for (at, (first, spoil, expected)) in CHECKS.iter().enumerate() {
        for (second, also, _) in &CHECKS[at..] {
            let mut draft = Draft::good();
            // The later modification first, so that the earlier one wins where both affect the same part.
            also(&mut draft);
            spoil(&mut draft);

            let received = draft.send().await.status_and_code().await;

            assert_eq!(received, *expected, "{first} and {second}");
        }
    }
}

#[tokio::test]
async fn an_unknown_method_is_reported_after_header_errors_and_before_param_errors() {
    let unknown = || {
        let mut draft = Draft::good();
        draft.body["method"] = json!("no/such");
        draft.set("mcp-method", "no/such");
        draft
    };
    let mut later = unknown();
    *meta(&mut later.body, "logLevel") = json!("loud");
    let mut earlier = unknown();
    earlier.set("mcp-method", "no/other");

    assert_eq!(
        unknown().send().await.status_and_code().await,
        (404, -32601)
    );
    assert_eq!(later.send().await.status_and_code().await, (404, -32601));
    assert_eq!(earlier.send().await.status_and_code().await, (400, -32020));
}

#[tokio::test]
async fn an_http_error_response_lacks_an_id_and_names_the_fix() {
    for (name, spoil, (status, code)) in &CHECKS[..5] {
        let mut draft = Draft::good();
        spoil(&mut draft);

        let http_response = draft.send().await;

        assert_eq!(http_response.status().as_u16(), *status, "{name}");
        let response = http_response.json().await;
        assert_eq!(response.get("id"), None, "{name}");
        assert_eq!(response["jsonrpc"], "2.0");
        assert_eq!(response["error"]["code"], *code, "{name}");
        assert!(response["error"]["message"].as_str().unwrap().len() > 10);
    }
}

#[tokio::test]
async fn every_stream_of_a_session_forbids_caching_and_transformation() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let caller = HttpTestClient::new(server()).in_session(version).await;

        let posted = caller.tool(1, "progress", json!({ "steps": 2 })).await;
        let opened = caller.get(None).await;

        for stream in [posted, opened] {
            assert!(stream.is_stream(), "{version}");
            let kept = stream.header("cache-control");
            assert_eq!(kept, Some("no-cache, no-transform"), "{version}");
            assert_eq!(stream.header("x-accel-buffering"), Some("no"));
            assert_eq!(stream.header("mcp-session-id"), None);
        }
    }
}
