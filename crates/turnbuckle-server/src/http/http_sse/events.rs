//! GET: the stream, which is all that the client hears.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::codec::sse;
use turnbuckle_store::StoreError;

use super::streams::{Opened, Streams};
use crate::{
    exchange::BoxFuture,
    http::{
        body::{Body, Events},
        endpoint::{Endpoint, Head, Permit},
        heartbeat::Heartbeat,
        post::accepts,
        refusal,
        stateless::event_stream,
    },
};

/// Opens a stream.
pub(super) fn open(
    endpoint: &Arc<Endpoint>,
    streams: Arc<Streams>,
    head: &Head,
    path: &str,
) -> Response<Body> {
    if !accepts(&head.headers).event_stream {
        return refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "send `Accept: text/event-stream`",
        );
    }
    let permit = match endpoint.admit() {
        Ok(permit) => permit,
        Err(refusal) => return refusal,
    };
    match streams.open(&endpoint.server, head, path) {
        Ok(opened) => event_stream(Body::events(StreamEvents::new(endpoint, opened, permit))),
        Err(error) => {
            if let Some(suppressed) = endpoint.logs.no_stream.pass() {
                tracing::warn!(%error, suppressed, "no new stream");
            }
            match error {
                StoreError::TooMany { .. } => refusal::too_many(None, error.to_string()),
                error => refusal::busy(None, error.to_string()),
            }
        }
    }
}

/// What a connection has to say, as events; dropping it ends the session.
struct StreamEvents {
    opened: Opened,
    /// The event that comes first.
    greeting: Option<Bytes>,
    /// Ends the connection when the server shuts down; `None` once that is done.
    ending: Option<BoxFuture<()>>,
    heartbeat: Heartbeat,
    _permit: Permit,
}

impl StreamEvents {
    fn new(endpoint: &Arc<Endpoint>, opened: Opened, permit: Permit) -> Self {
        let mut greeting = Vec::new();
        sse::Event::message(opened.uri().as_bytes())
            .with_name("endpoint")
            .write(&mut greeting);
        let (served, connection) = (endpoint.clone(), opened.connection().clone());
        let patience = endpoint.options.shutdown_timeout;
        Self {
            opened,
            greeting: Some(greeting.into()),
            ending: Some(Box::pin(async move {
                served.closed().await;
                connection.wind_down(patience).await;
            })),
            heartbeat: Heartbeat::new(endpoint.options.stream_heartbeat),
            _permit: permit,
        }
    }

    /// Takes all that the connection has to say, as events.
    fn poll_lines(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let sink = self.opened.connection().sink();
        sink.poll_take(cx, &mut Vec::new()).map(|taken| {
            // Writing never fails here, so there is no error to find.
            let lines = taken.ok().flatten()?;
            let mut events = Vec::with_capacity(lines.len() + 64);
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // The type is what readers assume, but some of them want to see it.
                sse::Event::message(line.trim_ascii_end())
                    .with_name("message")
                    .write(&mut events);
            }
            sink.written(lines, Ok(()));
            Some(events.into())
        })
    }

    fn poll_ending(&mut self, cx: &mut Context<'_>) {
        if let Some(ending) = &mut self.ending
            && ending.as_mut().poll(cx).is_ready()
        {
            self.ending = None;
        }
    }
}

impl Events for StreamEvents {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if let Some(greeting) = this.greeting.take() {
            return Poll::Ready(Some(greeting));
        }
        this.poll_ending(cx);
        if let Poll::Ready(events) = this.poll_lines(cx) {
            this.heartbeat.spoke();
            return Poll::Ready(events);
        }
        this.heartbeat.poll(cx, Instant::now()).map(Some)
    }
}
