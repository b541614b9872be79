//! What comes back: one message, or a stream of events.

use std::time::Duration;

use ::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;
use turnbuckle_protocol::codec::sse::{Decoder, Limits, Received};

use crate::http::Body;

/// The response to a request.
pub struct HttpResponse {
    response: Response<Body>,
    patience: Duration,
}

impl HttpResponse {
    pub(in crate::testing) fn new(response: Response<Body>, patience: Duration) -> Self {
        Self { response, patience }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// All headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// A header, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Says whether the body is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body.
    ///
    /// # Panics
    ///
    /// If it does not end in time.
    pub async fn bytes(self) -> Bytes {
        let body = timeout(self.patience, self.response.into_body().collect()).await;
        let Ok(body) = body.expect("the body ends in time");
        body.to_bytes()
    }

    /// The one message that the body is.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub async fn json(self) -> Value {
        let shown = format!("{self:?}");
        let is_json = self.header("content-type") == Some("application/json");
        let body = self.bytes().await;
        match serde_json::from_slice(&body) {
            Ok(json) if is_json => json,
            _ => panic!(
                "this is not JSON: {shown} {}",
                String::from_utf8_lossy(&body)
            ),
        }
    }

    /// The body as a stream of events.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn events(self) -> Events {
        assert!(self.is_stream(), "this is no stream: {self:?}");
        Events {
            body: self.response.into_body(),
            decoder: Decoder::new(Limits::default()),
            chunk: Bytes::new(),
            patience: self.patience,
        }
    }
}

impl std::fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.status(), self.headers())
    }
}

/// A stream that is read event by event. Dropping it is a connection that breaks.
pub struct Events {
    body: Body,
    decoder: Decoder,
    chunk: Bytes,
    patience: Duration,
}

impl Events {
    /// The next event; `None` at the end.
    ///
    /// # Panics
    ///
    /// If neither comes in time.
    pub async fn next(&mut self) -> Option<Received> {
        let event = timeout(self.patience, self.read()).await;
        event.expect("the stream goes on in time, or ends")
    }

    /// The next message; events that only carry an id are passed over. `None` at the end.
    ///
    /// # Panics
    ///
    /// If neither comes in time, or if an event is no message.
    pub async fn message(&mut self) -> Option<Value> {
        let message = timeout(self.patience, self.read_message()).await;
        message.expect("the stream goes on in time, or ends")
    }

    /// The next bytes as they come, comments included; `None` at the end.
    ///
    /// # Panics
    ///
    /// If neither comes in time.
    pub async fn bytes(&mut self) -> Option<Bytes> {
        let bytes = timeout(self.patience, self.read_bytes()).await;
        bytes.expect("the stream goes on in time, or ends")
    }

    /// What `Last-Event-ID` says if the stream is to go on from here; empty if the stream named nothing.
    pub fn last_event_id(&self) -> &str {
        self.decoder.last_event_id()
    }

    /// How long the stream asked to wait before coming back.
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    pub(in crate::testing) async fn read_message(&mut self) -> Option<Value> {
        loop {
            let event = self.read().await?;
            if !event.data.is_empty() {
                let message = serde_json::from_str(&event.data);
                return Some(message.expect("an event is a message"));
            }
        }
    }

    /// The next event, however long it takes. Dropping the future loses nothing.
    pub(in crate::testing) async fn read(&mut self) -> Option<Received> {
        loop {
            let mut rest = &self.chunk[..];
            let event = self.decoder.next(&mut rest);
            self.chunk = self.chunk.slice(self.chunk.len() - rest.len()..);
            match event.expect("an event has a bearable size") {
                Some(event) => return Some(event),
                None => self.chunk = self.read_bytes().await?,
            }
        }
    }

    async fn read_bytes(&mut self) -> Option<Bytes> {
        loop {
            let Ok(frame) = self.body.frame().await?;
            if let Ok(bytes) = frame.into_data() {
                return Some(bytes);
            }
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("last_event_id", &self.last_event_id())
            .finish_non_exhaustive()
    }
}
