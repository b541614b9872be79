//! A mock MCP server on HTTP with the handshake of its revision.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnbuckle_client::{Client, ClientBuilder, ConnectError, LifecycleMode, http::HttpTarget};

use crate::servers::mock_http::{MockHttpServer, MockResponse, RecordedRequest};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LATEST_LEGACY: &str = "2025-11-25";
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", LATEST_LEGACY];

/// A server of a revision. Requests that `respond` does not handle get a default response.
///
/// Session ids are `session-1`, `session-2` and so on; GET streams are not supported.
pub(crate) fn server(
    revision: &'static str,
    respond: impl Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
) -> MockHttpServer {
    let sessions = AtomicUsize::new(0);
    MockHttpServer::in_memory(move |request| {
        respond(request).unwrap_or_else(|| match request.method.as_str() {
            "POST" => default_response(revision, request, &sessions),
            "DELETE" => MockResponse::status(200),
            _ => MockResponse::status(405),
        })
    })
}

fn default_response(
    revision: &str,
    request: &RecordedRequest,
    sessions: &AtomicUsize,
) -> MockResponse {
    let modern = revision == MODERN;
    match request.rpc().as_str() {
        "server/discover" if modern => MockResponse::result(request, &discover_result()),
        "server/discover" => MockResponse::status(400),
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let reply = MockResponse::result(request, &initialize_result(revision));
            reply.header("Mcp-Session-Id", &format!("session-{number}"))
        }
        "tools/call" => MockResponse::result(request, &text_result("done")),
        _ if request.json()["id"].is_null() || request.rpc().is_empty() => {
            MockResponse::status(202)
        }
        _ => MockResponse::result(request, &json!({})),
    }
}

fn discover_result() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {}, "logging": {} },
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn initialize_result(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {}, "logging": {} },
        "serverInfo": { "name": "fake", "version": "1" },
    })
}

/// A tool result that is valid in every revision.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// Returns the response to a request, as a message.
pub(crate) fn response_to(request: &RecordedRequest, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": text_result(text) })
}

/// Handles only tool calls.
pub(crate) fn on_call(
    reply: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
) -> impl Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static {
    move |request| (request.rpc() == "tools/call").then(|| reply(request))
}

/// Returns the target of the mock server.
pub(crate) fn target_of(mock: &MockHttpServer) -> HttpTarget {
    HttpTarget::new(mock.url("/mcp")).connector(mock.dial())
}

/// A client of this revision, without era detection.
pub(crate) fn builder_for(revision: &str) -> ClientBuilder {
    let era = match revision {
        MODERN => LifecycleMode::Modern,
        _ => LifecycleMode::Legacy,
    };
    Client::builder("test", "1.0").lifecycle_mode(era)
}

pub(crate) async fn connect(mock: &MockHttpServer, revision: &str) -> Client {
    let connected = builder_for(revision).connect(target_of(mock)).await;
    connected.expect("the mock server accepts connections")
}

/// Connects to a server that makes it fail; returns the error.
pub(crate) async fn connect_error(mock: &MockHttpServer, revision: &str) -> ConnectError {
    let connected = builder_for(revision).connect(target_of(mock)).await;
    connected.expect_err("the server rejects the connection")
}

/// Returns the posted messages of a method.
pub(crate) fn posted_messages(mock: &MockHttpServer, method: &str) -> Vec<RecordedRequest> {
    let mut requests = mock.requests();
    requests.retain(|request| request.rpc() == method);
    requests
}

/// Returns the requests with an HTTP method.
pub(crate) fn by_method(mock: &MockHttpServer, method: &str) -> Vec<RecordedRequest> {
    let mut requests = mock.requests();
    requests.retain(|request| request.method == method);
    requests
}

/// Runs all tasks that are ready without a delay.
pub(crate) async fn run_ready_tasks() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
