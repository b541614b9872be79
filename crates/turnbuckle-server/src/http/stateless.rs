//! Requests that stand on their own: the connection is the call.
//!
//! No task and no channel: the handler runs in the response's own future and, once the response is a stream, in
//! its body. Whoever drops either cancels the call.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use ::http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName},
};
use bytes::Bytes;
use tokio::time::{Instant, timeout};
use turnbuckle_protocol::{codec::sse, jsonrpc::Request, meta::RequestMeta};

use super::{
    Options,
    bell::Bell,
    body::{Body, Events},
    endpoint::{Head, Permit},
    heartbeat::Heartbeat,
    refusal,
};
use crate::{
    Server, dispatch,
    exchange::{Exchange, Step},
    lifecycle::stateless::{self, Mirror},
};

/// How many bytes of events are put together into one write.
pub(super) const WRITE_SIZE: usize = 32 * 1024;

/// Begins to answer a request that says all about itself.
pub(super) fn begin(
    server: &Server,
    head: &Head,
    request: &Request<'_>,
    meta: RequestMeta<'_>,
) -> Result<Exchange, Response<Body>> {
    let mirror: Option<&dyn Mirror> = Some(head);
    let caller =
        stateless::admit(server, request, meta, mirror, head.arrival()).map_err(|refused| {
            let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
            refusal::error(status, Some(&request.id), &refused.error)
        })?;
    Ok(dispatch::begin(server, request, caller, mirror))
}

/// Runs a call: its answer is one JSON body if nothing comes before it, else the end of a stream.
#[expect(
    clippy::manual_async_fn,
    reason = "an `async fn` has room for its arguments twice"
)]
pub(super) fn answer(
    mut exchange: Exchange,
    permit: Permit,
    options: &Options,
) -> impl Future<Output = Response<Body>> {
    async move {
        match poll_fn(|cx| Poll::Ready(exchange.poll_step(cx))).await {
            Poll::Ready(Step::Answer(answer)) => refusal::answer(answer),
            // What comes seldom is boxed: nearly all calls are ready now, and a small future is a cheap one.
            first => Box::pin(answer_later(exchange, first, permit, options)).await,
        }
    }
}

async fn answer_later(
    mut exchange: Exchange,
    first: Poll<Step>,
    permit: Permit,
    options: &Options,
) -> Response<Body> {
    let first = match first {
        Poll::Ready(step) => Some(step),
        Poll::Pending => timeout(options.stream_after, exchange.step()).await.ok(),
    };
    let mut written = Vec::new();
    match first {
        Some(Step::Answer(answer)) => return refusal::answer(answer),
        Some(Step::Message(message)) => sse::Event::message(&message).write(&mut written),
        // The first byte shows that somebody is working on it.
        None => sse::write_comment(&mut written, "working"),
        Some(Step::Cancelled(_)) => return event_stream(Body::empty()),
    }
    // What has run so far was to wake somebody else.
    exchange.rouse();
    event_stream(Body::events(CallEvents {
        exchange: Some(exchange),
        bell: Bell::new(),
        rests: false,
        written,
        heartbeat: Heartbeat::new(options.stream_heartbeat),
        _permit: permit,
    }))
}

/// A response that is a stream of events.
pub(super) fn event_stream(body: Body) -> Response<Body> {
    const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A running call as a stream; dropping it cancels the call.
struct CallEvents {
    /// `None` once it is over.
    exchange: Option<Exchange>,
    /// Rings when the call or the heartbeat goes on.
    bell: Bell,
    /// Whether all that is left to do is to wait until it rings.
    rests: bool,
    /// Events that are to be sent next.
    written: Vec<u8>,
    heartbeat: Heartbeat,
    _permit: Permit,
}

impl Events for CallEvents {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        match &mut this.exchange {
            Some(exchange) if this.bell.rang(cx) => exchange.rouse(),
            _ if this.rests => return Poll::Pending,
            _ => {}
        }
        this.rests = false;
        let mut cx = this.bell.context();
        while let Some(exchange) = &mut this.exchange {
            // What was said goes out before the handler runs on: it is asked again when that is done.
            let is_said = !this.written.is_empty() && exchange.needs_handler();
            if is_said || this.written.len() >= WRITE_SIZE {
                break;
            }
            let Poll::Ready(step) = exchange.poll_roused_step(&mut cx) else {
                break;
            };
            let mut write = |event: Bytes| sse::Event::message(&event).write(&mut this.written);
            match step {
                Step::Message(message) => {
                    write(message);
                    continue;
                }
                Step::Answer(answer) => write(answer.body.into_bytes()),
                Step::Cancelled(rest) => rest.into_iter().for_each(write),
            }
            this.exchange = None;
        }
        if !this.written.is_empty() {
            this.heartbeat.spoke();
            return Poll::Ready(Some(std::mem::take(&mut this.written).into()));
        }
        if this.exchange.is_none() {
            return Poll::Ready(None);
        }
        let alive = this.heartbeat.poll(&mut cx, Instant::now());
        this.rests = alive.is_pending();
        alive.map(Some)
    }
}
