//! A client of HTTP+SSE without a socket.

use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};
use tokio::time::timeout;
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse},
};

use crate::http::test_client::{HttpTestClient, HttpTestResponse, Stream, initialize};

/// HTTP options with HTTP+SSE enabled.
pub(crate) fn with_http_sse(server: Server) -> Http {
    Http::new(server).http_sse(HttpSse::new())
}

/// A client with an open stream.
pub(crate) struct HttpSseClient {
    pub(crate) caller: HttpTestClient,
    pub(crate) stream: Stream,
    /// The URL for messages, from the first event.
    pub(crate) uri: String,
}

impl HttpSseClient {
    /// Opens a stream and reads its first event.
    pub(crate) async fn open(caller: &HttpTestClient) -> Self {
        let http_response = caller.send(get("/sse"), "").await;
        assert_eq!(http_response.status(), 200);
        let mut stream = http_response.stream();
        let first = stream.event().await.unwrap();
        assert_eq!(first.name, "endpoint");
        Self {
            caller: caller.clone(),
            stream,
            uri: first.data,
        }
    }

    /// Opens a stream and initializes a session.
    pub(crate) async fn initialized(caller: &HttpTestClient, revision: &str) -> Self {
        let mut peer = Self::open(caller).await;
        let response = peer.request(&initialize(revision)).await;
        assert_eq!(response["result"]["protocolVersion"], revision);
        peer.post_accepted(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        peer
    }

    /// Posts a message and returns the response.
    pub(crate) async fn post(&self, body: impl Into<bytes::Bytes>) -> HttpTestResponse {
        self.caller.send(post(&self.uri), body).await
    }

    /// Posts a message, which must be accepted.
    pub(crate) async fn post_accepted(&self, message: &Value) {
        let http_response = self.post(message.to_string()).await;
        assert_eq!(http_response.status(), 202);
        assert_eq!(http_response.bytes().await, "");
    }

    /// The next message on the stream.
    pub(crate) async fn next(&mut self) -> Value {
        let event = self.stream.event().await.expect("another event");
        assert_eq!(event.name, "message");
        serde_json::from_str(&event.data).unwrap()
    }

    /// Posts a request and reads the next message.
    pub(crate) async fn request(&mut self, message: &Value) -> Value {
        self.post_accepted(message).await;
        self.next().await
    }

    /// Fails if a message arrives within a second.
    pub(crate) async fn expect_no_message(&mut self) {
        let event = timeout(Duration::from_secs(1), self.stream.event()).await;
        assert!(event.is_err(), "{event:?}");
    }
}

/// A GET as clients of this transport send it.
pub(crate) fn get(path: &str) -> http::request::Builder {
    request(Method::GET, path).header("accept", "text/event-stream")
}

/// A POST as clients of this transport send it: without `Accept`.
pub(crate) fn post(path: &str) -> http::request::Builder {
    request(Method::POST, path).header("content-type", "application/json")
}

fn request(method: Method, path: &str) -> http::request::Builder {
    let builder = Request::builder().method(method).uri(path);
    builder.header("host", "localhost:8080")
}

pub(crate) fn ping(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}
