//! Arguments that are copied to headers.

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{HttpTestClient, HttpTestResponse, modern, modern_headers};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the headers matter")]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
    #[schemars(extend("x-mcp-header" = "Limit"))]
    limit: Option<i64>,
}

async fn query(arguments: Value, headers: &[(&'static str, &str)]) -> HttpTestResponse {
    let tool = Tool::new("query", async |_: Query| Ok("found".to_owned()));
    let caller = HttpTestClient::new(Server::new("test", "1").tool(tool));
    let message = modern(
        "tools/call",
        json!({ "name": "query", "arguments": arguments }),
    );
    let mut builder = modern_headers(caller.request(Method::POST), &message);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    caller.send(builder, message.to_string()).await
}

#[tokio::test]
async fn a_repeated_argument_is_accepted() {
    req!(
        "http.param.server-validate",
        "http.param.designate",
        "http.header.numeric-compare",
        "http.header.not-sentinel-literal"
    );
    for (arguments, headers) in [
        (
            json!({ "region": "eu" }),
            [("mcp-param-region", "eu")].as_slice(),
        ),
        (json!({ "region": "eu" }), &[("MCP-Param-Region", " eu ")]),
        (json!({ "region": "" }), &[("mcp-param-region", "")]),
        (
            json!({ "region": "世界" }),
            &[("mcp-param-region", "=?base64?5LiW55WM?=")],
        ),
        (
            json!({ "region": "=?BASE64?5LiW?=" }),
            &[("mcp-param-region", "=?BASE64?5LiW?=")],
        ),
        (json!({ "limit": 42 }), &[("mcp-param-limit", "42.0")]),
        (json!({ "limit": 0 }), &[("mcp-param-limit", "0")]),
    ] {
        let http_response = query(arguments.clone(), headers).await;
        assert_eq!(http_response.status(), 200, "{arguments} {headers:?}");
    }
}

#[tokio::test]
async fn a_missing_argument_needs_no_header() {
    req!("http.param.server-not-expect");
    for arguments in [json!({}), json!({ "region": null })] {
        assert_eq!(query(arguments, &[]).await.status(), 200);
    }
}

#[tokio::test]
async fn a_header_that_differs_from_the_body_is_rejected() {
    req!(
        "http.param.server-missing-reject",
        "http.param.mismatch-error",
        "http.header.bad-base64",
        "http.header.invalid-chars",
        "http.header.no-sole-trust",
        "http.param.type.safe-integer"
    );
    for (arguments, headers) in [
        (json!({ "region": "eu" }), [].as_slice()),
        (json!({ "region": "eu" }), &[("mcp-param-region", "us")]),
        (json!({ "region": "eu" }), &[("mcp-param-region", "EU")]),
        (
            json!({ "region": "eu" }),
            &[("mcp-param-region", "eu"), ("mcp-param-region", "eu")],
        ),
        (json!({}), &[("mcp-param-region", "eu")]),
        (
            json!({ "region": "Hello" }),
            &[("mcp-param-region", "=?base64?SGVsbG8?=")],
        ),
        (
            json!({ "region": "Hello" }),
            &[("mcp-param-region", "=?base64?SGVs!!!bG8=?=")],
        ),
        (json!({ "region": "é" }), &[("mcp-param-region", "é")]),
        (
            json!({ "limit": 9_007_199_254_740_993_i64 }),
            &[("mcp-param-limit", "9007199254740993")],
        ),
    ] {
        let http_response = query(arguments.clone(), headers).await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32020),
            "{arguments} {headers:?}"
        );
    }
}
