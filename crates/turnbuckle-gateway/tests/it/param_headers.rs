//! Arguments that are repeated in headers, on both sides of the gateway.

use std::sync::Arc;

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use turnbuckle_client::{LifecycleMode, Target, http::HttpTarget};
use turnbuckle_gateway::{RunningGateway, Upstream};
use turnbuckle_protocol::{
    RpcError,
    types::{ListCapability, ServerCapabilities, SubscriptionFilter},
};
use turnbuckle_server::{
    Server, Tool,
    http::Http,
    relay::{Relay, RelayFuture, RelayedRequest, RelayedResult},
    testing::{self, Peer, TestHttpResponse},
};

use crate::{
    scripts::members,
    upstreams::{ERAS, start, upstream},
};

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

async fn query(query: Query) -> String {
    query.region.unwrap_or_else(|| "everywhere".to_owned())
}

fn server() -> Server {
    Server::new("search", "1.0.0").tool(Tool::new("query", async |args| Ok(query(args).await)))
}

/// A modern server on HTTP.
async fn http_upstream(name: &str) -> Upstream {
    served_on_http(name, server()).await
}

async fn served_on_http(name: &str, server: Server) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(turnbuckle_server::http::serve(listener, server));
    Upstream::new(name, move || Target::from(HttpTarget::new(url.clone())))
        .lifecycle_mode(LifecycleMode::Modern)
}

/// Calls a tool over HTTP, with headers of the client.
async fn post(
    gateway: &RunningGateway,
    tool: &str,
    arguments: Value,
    headers: &[(&str, &str)],
) -> TestHttpResponse {
    let client = testing::http(Http::new(gateway.server()));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut request = client
        .request(Method::POST)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request, message.to_string()).await
}

#[tokio::test]
async fn headers_of_a_client_are_compared_with_the_body() {
    for mode in ERAS {
        let gateway = start([upstream("search", mode, server())]).await;
        let region = json!({ "region": "eu" });

        let equal = post(
            &gateway,
            "query",
            region.clone(),
            &[("mcp-param-region", "eu")],
        )
        .await;
        assert_eq!(equal.status(), 200, "{mode:?}");
        let result = equal.json().await;
        assert_eq!(result["result"]["content"][0]["text"], "eu", "{mode:?}");

        for headers in [[].as_slice(), &[("mcp-param-region", "us")]] {
            let different = post(&gateway, "query", region.clone(), headers).await;
            assert_eq!(different.status(), 400, "{mode:?}");
            assert_eq!(different.json().await["error"]["code"], -32020, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn headers_are_compared_by_the_definition_of_a_renamed_tool() {
    let servers = ["a", "b"].map(|name| upstream(name, LifecycleMode::Modern, server()));
    let gateway = start(servers).await;
    let region = json!({ "region": "eu" });
    let headers = [("mcp-param-region", "eu")];
    let equal = post(&gateway, "b_query", region.clone(), &headers).await;
    assert_eq!(equal.status(), 200);
    let different = post(&gateway, "b_query", region, &[]).await;
    assert_eq!(different.json().await["error"]["code"], -32020);
}

#[tokio::test]
async fn a_server_on_http_gets_the_headers_that_it_requires() {
    let gateway = start([http_upstream("a").await, http_upstream("b").await]).await;
    for peer in [
        Peer::connect(gateway.server()).legacy("2025-11-25"),
        Peer::connect(gateway.server()).modern(),
    ] {
        let mut peer = peer.await;
        for region in ["eu", "Österreich"] {
            let response = peer.call_tool("a_query", json!({ "region": region })).await;
            assert_eq!(response.text(), region);
        }
        let response = peer.call_tool("b_query", json!({})).await;
        assert_eq!(response.text(), "everywhere");
    }
}

#[tokio::test]
async fn a_param_header_that_the_tool_does_not_define_is_ignored() {
    let gateway = start([http_upstream("search").await]).await;
    let headers = [("mcp-param-region", "eu"), ("mcp-param-other", "x")];
    let response = post(&gateway, "query", json!({ "region": "eu" }), &headers).await;
    assert_eq!(response.status(), 200);
}

/// A server with a tool definition that is invalid over HTTP.
struct InvalidHeaders;

impl Relay for InvalidHeaders {
    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::new().tools(ListCapability::default())
    }

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>> {
        assert_eq!(request.method(), "tools/list");
        let tool = |name: &str, r#type: &str| {
            let region = json!({ "type": r#type, "x-mcp-header": "Region" });
            let schema = json!({ "type": "object", "properties": { "region": region } });
            json!({ "name": name, "inputSchema": schema })
        };
        let tools = [tool("good", "string"), tool("invalid", "object")];
        let result = json!({
            "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private",
        });
        Box::pin(async move { Ok(result.to_string().into()) })
    }

    fn subscribe<'a>(
        &'a self,
        _request: RelayedRequest,
        _filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn a_tool_with_invalid_headers_is_left_out_over_http() {
    let server = || Server::new("search", "1.0.0").relay(Arc::new(InvalidHeaders));
    for (upstream, expected) in [
        (
            served_on_http("search", server()).await,
            ["good"].as_slice(),
        ),
        (
            upstream("search", LifecycleMode::Modern, server()),
            &["good", "invalid"],
        ),
    ] {
        let gateway = start([upstream]).await;
        let mut peer = Peer::connect(gateway.server()).await;
        let tools = peer.request("tools/list", json!({})).await;
        assert_eq!(members(tools.expect_result(), "tools", "name"), expected);
    }
}
