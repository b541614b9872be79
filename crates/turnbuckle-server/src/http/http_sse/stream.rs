//! GET: the stream of all messages to the client.

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

use super::registry::HttpSseSessionGuard;
use crate::{
    http::{
        body::{ResponseBody, SseBody},
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        http_sse::HttpSseRegistry,
        post::accepted_types,
        responses::{self, event_stream},
        session::limits,
        stream::Heartbeat,
    },
    request::BoxFuture,
};

/// Opens a stream.
pub(crate) fn open(
    endpoint: &Arc<Endpoint>,
    registry: Arc<HttpSseRegistry>,
    head: &RequestHead,
    path: &str,
) -> Response<ResponseBody> {
    if !accepted_types(&head.headers).event_stream {
        return responses::invalid_request(
            StatusCode::NOT_ACCEPTABLE,
            "send `Accept: text/event-stream`",
        );
    }
    let mut permit = match endpoint.acquire_permit(|| limits::quota_owner(head)) {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    permit.count_for(head);
    match registry.open(&endpoint.server, head, path) {
        Ok(session) => event_stream(ResponseBody::from_sse(HttpSseBody::new(
            endpoint, session, permit,
        ))),
        Err(error) => {
            if let Some(suppressed) = endpoint.log_limiters.stream_rejected.try_pass() {
                tracing::warn!(%error, suppressed, "stream rejected");
            }
            match error {
                StoreError::TooMany { .. } => responses::too_many_requests(None, error.to_string()),
                error => responses::service_unavailable(None, error.to_string()),
            }
        }
    }
}

/// The outgoing messages of a connection as events. Dropping it ends the session.
struct HttpSseBody {
    session: HttpSseSessionGuard,
    /// The first event, which contains the URL for messages.
    endpoint_event: Option<Bytes>,
    /// Drains the connection when the server shuts down; `None` once that is done.
    shutdown: Option<BoxFuture<()>>,
    heartbeat: Heartbeat,
    _permit: InFlightPermit,
}

impl HttpSseBody {
    fn new(endpoint: &Arc<Endpoint>, session: HttpSseSessionGuard, permit: InFlightPermit) -> Self {
        let mut endpoint_event = Vec::new();
        sse::SseEvent::message(session.uri().as_bytes())
            .with_name("endpoint")
            .write(&mut endpoint_event);
        let (closing_endpoint, connection) = (endpoint.clone(), session.connection().clone());
        let timeout = endpoint.options.shutdown_timeout;
        Self {
            session,
            endpoint_event: Some(endpoint_event.into()),
            shutdown: Some(Box::pin(async move {
                closing_endpoint.closed().await;
                connection.drain(timeout).await;
            })),
            heartbeat: Heartbeat::new(endpoint.options.stream_heartbeat),
            _permit: permit,
        }
    }

    /// Takes all outgoing messages of the connection, encoded as events.
    fn poll_lines(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let sink = self.session.connection().write_queue();
        sink.poll_chunk(cx, &mut Vec::new()).map(|taken| {
            // Writing cannot fail here, so there is never an error here.
            let lines = taken.ok().flatten()?;
            let mut events = Vec::with_capacity(lines.len() + 64);
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // `message` is the default event type, but some clients require it to be explicit.
                sse::SseEvent::message(line.trim_ascii_end())
                    .with_name("message")
                    .write(&mut events);
            }
            sink.finish_chunk(lines, Ok(()));
            Some(events.into())
        })
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) {
        if let Some(shutdown) = &mut self.shutdown
            && shutdown.as_mut().poll(cx).is_ready()
        {
            self.shutdown = None;
        }
    }
}

impl SseBody for HttpSseBody {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if let Some(endpoint_event) = this.endpoint_event.take() {
            return Poll::Ready(Some(endpoint_event));
        }
        this.poll_shutdown(cx);
        if let Poll::Ready(events) = this.poll_lines(cx) {
            this.heartbeat.reset();
            return Poll::Ready(events);
        }
        this.heartbeat.poll(cx, Instant::now()).map(Some)
    }
}
