//! HTTP+SSE: all answers come on one stream, which first says where to post.

use ::http::{Method, StatusCode};
use serde_json::Value;

use super::Trouble;
use crate::testing::{Events, HttpClient};

/// A client whose stream is open.
pub(in crate::testing) struct HttpSseWire {
    client: HttpClient,
    events: Events,
    /// Where the stream says that messages go.
    uri: String,
}

impl HttpSseWire {
    /// Opens the stream and reads its first event.
    pub(in crate::testing) async fn open(client: HttpClient) -> Self {
        let response = client.send(client.bare(Method::GET, "/sse"), "").await;
        let mut events = response.events();
        let first = events.next().await.expect("the stream begins");
        assert_eq!(first.name, "endpoint", "the stream says where to post");
        Self {
            client,
            events,
            uri: first.data,
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        let request = self.client.bare(Method::POST, &self.uri);
        let response = self.client.send(request, message.to_string()).await;
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            return Ok(());
        }
        let body = response.bytes().await;
        Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&body)))
    }

    pub(super) async fn receive(&mut self) -> Option<Value> {
        self.events.read_message().await
    }
}
