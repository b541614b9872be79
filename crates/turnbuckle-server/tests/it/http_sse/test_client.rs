//! A client of HTTP+SSE without a socket: it reads a stream, and posts where the stream says.

use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};
use tokio::time::timeout;
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse},
};

use crate::http::test_client::{Answered, Caller, Stream, initialize};

/// The options that offer HTTP+SSE.
pub(crate) fn offered(server: Server) -> Http {
    Http::new(server).http_sse(HttpSse::new())
}

/// A client whose stream is open.
pub(crate) struct Peer {
    pub(crate) caller: Caller,
    pub(crate) stream: Stream,
    /// Where the stream says that messages go.
    pub(crate) uri: String,
}

impl Peer {
    /// Opens a stream and reads its first event.
    pub(crate) async fn open(caller: &Caller) -> Self {
        let answered = caller.send(get("/sse"), "").await;
        assert_eq!(answered.status(), 200);
        let mut stream = answered.stream();
        let first = stream.event().await.unwrap();
        assert_eq!(first.name, "endpoint");
        Self {
            caller: caller.clone(),
            stream,
            uri: first.data,
        }
    }

    /// Opens a stream and shakes hands.
    pub(crate) async fn initialized(caller: &Caller, revision: &str) -> Self {
        let mut peer = Self::open(caller).await;
        let answer = peer.ask(&initialize(revision)).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        peer.take(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        peer
    }

    /// Posts a message, whatever comes of it.
    pub(crate) async fn post(&self, body: impl Into<bytes::Bytes>) -> Answered {
        self.caller.send(post(&self.uri), body).await
    }

    /// Posts a message that is taken.
    pub(crate) async fn take(&self, message: &Value) {
        let answered = self.post(message.to_string()).await;
        assert_eq!(answered.status(), 202);
        assert_eq!(answered.bytes().await, "");
    }

    /// The next message on the stream.
    pub(crate) async fn next(&mut self) -> Value {
        let event = self.stream.event().await.expect("another event");
        assert_eq!(event.name, "message");
        serde_json::from_str(&event.data).unwrap()
    }

    /// Posts a request and reads the next message.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.take(message).await;
        self.next().await
    }

    /// Sees that nothing comes for a while.
    pub(crate) async fn expect_silence(&mut self) {
        let event = timeout(Duration::from_secs(1), self.stream.event()).await;
        assert!(event.is_err(), "{event:?}");
    }
}

/// A GET as clients of this transport send it.
pub(crate) fn get(path: &str) -> http::request::Builder {
    request(Method::GET, path).header("accept", "text/event-stream")
}

/// A POST as clients of this transport send it: they do not say what they accept.
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
