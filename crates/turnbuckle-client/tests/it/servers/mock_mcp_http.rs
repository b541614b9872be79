//! A fake server on HTTP that knows the handshake of its revision, and leaves the rest to the test.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnbuckle_client::{Client, ClientBuilder, ConnectError, LifecycleMode, http::HttpTarget};

use crate::servers::mock_http::{MockHttpServer, MockResponse, RecordedRequest};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LATEST_LEGACY: &str = "2025-11-25";
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", LATEST_LEGACY];

/// A server of a revision. What the test does not answer is answered as a plain server would.
///
/// Sessions are named `session-1`, `session-2` and so on; there is no stream of the server's own.
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

/// The result of a tool, good for every revision.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// The answer to a request that was seen, as a message.
pub(crate) fn response_to(request: &RecordedRequest, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": text_result(text) })
}

/// Answers calls of tools, and leaves everything else.
pub(crate) fn on_call(
    reply: impl Fn(&RecordedRequest) -> MockResponse + Send + Sync + 'static,
) -> impl Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static {
    move |request| (request.rpc() == "tools/call").then(|| reply(request))
}

/// Where the fake is.
pub(crate) fn target_of(mock: &MockHttpServer) -> HttpTarget {
    HttpTarget::new(mock.url("/mcp")).connector(mock.dial())
}

/// A client that speaks this revision, and asks nothing else first.
pub(crate) fn builder_for(revision: &str) -> ClientBuilder {
    let era = match revision {
        MODERN => LifecycleMode::Modern,
        _ => LifecycleMode::Legacy,
    };
    Client::builder("test", "1.0").lifecycle_mode(era)
}

pub(crate) async fn connect(mock: &MockHttpServer, revision: &str) -> Client {
    let connected = builder_for(revision).connect(target_of(mock)).await;
    connected.expect("the fake can be connected to")
}

/// Tries to connect to a fake that makes it fail.
pub(crate) async fn connect_error(mock: &MockHttpServer, revision: &str) -> ConnectError {
    let connected = builder_for(revision).connect(target_of(mock)).await;
    connected.expect_err("this cannot go well")
}

/// Every message of a method that was posted.
pub(crate) fn posted_messages(mock: &MockHttpServer, method: &str) -> Vec<RecordedRequest> {
    let mut requests = mock.requests();
    requests.retain(|request| request.rpc() == method);
    requests
}

/// Every request with an HTTP method.
pub(crate) fn by_method(mock: &MockHttpServer, method: &str) -> Vec<RecordedRequest> {
    let mut requests = mock.requests();
    requests.retain(|request| request.method == method);
    requests
}

/// Lets everything happen that needs no time.
pub(crate) async fn run_ready_tasks() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
