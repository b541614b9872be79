//! Stateless requests: a call is bound to its connection.
//!
//! Neither a task nor a channel is needed. The handler runs in the future of the response and, once the response is a
//! stream, in its body. Dropping either cancels the call.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use ::http::Response;
use bytes::Bytes;
use tokio::time::{Instant, timeout};
use turnbuckle_protocol::{codec::sse, jsonrpc::Request, meta::RequestMeta};

use crate::{
    Server,
    http::{
        body::{ResponseBody, SseBody},
        endpoint::{InFlightPermit, RequestHead},
        responses::{self, event_stream},
        stream::{Heartbeat, MAX_WRITE_BYTES},
    },
    lifecycle::stateless::{self, RequestHeaders},
    request::{RequestEvent, RunningRequest},
    sync::WakeFlag,
};

/// Validates a stateless request and starts its handler.
pub(crate) fn start_request(
    server: &Server,
    head: &RequestHead,
    request: &Request<'_>,
    meta: RequestMeta<'_>,
) -> Result<RunningRequest, Response<ResponseBody>> {
    let request_headers: Option<&dyn RequestHeaders> = Some(head);
    let transport_info = head.transport_info();
    let origin = stateless::validate(server, request, meta, request_headers, transport_info)
        .map_err(|rejection| responses::rejection(Some(&request.id), &rejection))?;
    Ok(RunningRequest::start(
        server,
        request,
        origin,
        request_headers,
    ))
}

/// Runs a call. The response is one JSON body if the call sends no message first, otherwise a stream.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an `async fn` stores its arguments twice"
)]
pub(crate) fn respond(
    mut running_request: RunningRequest,
    permit: InFlightPermit,
    head: &RequestHead,
) -> impl Future<Output = Response<ResponseBody>> {
    async move {
        match poll_fn(|cx| Poll::Ready(running_request.poll_event(cx))).await {
            Poll::Ready(RequestEvent::Response(final_response)) => {
                responses::rpc_response(final_response)
            }
            // Calls that wait are boxed. Nearly all calls are ready now, so this keeps their future small.
            first => Box::pin(respond_later(running_request, first, permit, head)).await,
        }
    }
}

async fn respond_later(
    mut running_request: RunningRequest,
    first: Poll<RequestEvent>,
    mut permit: InFlightPermit,
    head: &RequestHead,
) -> Response<ResponseBody> {
    permit.count_for(head);
    let options = &permit.endpoint.options;
    let first = match first {
        Poll::Ready(step) => Some(step),
        Poll::Pending => {
            let next = running_request.next_event_after_wake();
            timeout(options.sse_upgrade_after, next).await.ok()
        }
    };
    let mut pending_bytes = Vec::new();
    match first {
        Some(RequestEvent::Response(final_response)) => {
            return responses::rpc_response(final_response);
        }
        Some(RequestEvent::Message(message)) => {
            sse::SseEvent::message(&message).write(&mut pending_bytes);
        }
        // The first bytes show the client that the call is running.
        None => sse::write_comment(&mut pending_bytes, "working"),
        Some(RequestEvent::Cancelled(_)) => return event_stream(ResponseBody::empty()),
    }
    // The call has registered the waker of the response future, not that of the body.
    running_request.mark_woken();
    event_stream(ResponseBody::from_sse(CallStream {
        running_request: Some(running_request),
        wake_flag: WakeFlag::new(),
        waiting_for_wake: false,
        pending_bytes,
        heartbeat: Heartbeat::new(options.stream_heartbeat),
        _permit: permit,
    }))
}

/// A running call as an event stream. Dropping it cancels the call.
struct CallStream {
    /// `None` once the call has ended.
    running_request: Option<RunningRequest>,
    /// Set when the call or the heartbeat can make progress.
    wake_flag: WakeFlag,
    /// Set when there is nothing to do until the flag is set.
    waiting_for_wake: bool,
    /// Encoded events that are sent next.
    pending_bytes: Vec<u8>,
    heartbeat: Heartbeat,
    _permit: InFlightPermit,
}

impl SseBody for CallStream {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        match &mut this.running_request {
            Some(running_request) if this.wake_flag.take_woken(cx) => running_request.mark_woken(),
            _ if this.waiting_for_wake => return Poll::Pending,
            _ => {}
        }
        this.waiting_for_wake = false;
        let mut cx = this.wake_flag.context();
        while let Some(running_request) = &mut this.running_request {
            // Send pending events before the handler continues; hyper polls again after writing them.
            let must_flush = !this.pending_bytes.is_empty() && running_request.needs_handler();
            if must_flush || this.pending_bytes.len() >= MAX_WRITE_BYTES {
                break;
            }
            let Poll::Ready(step) = running_request.poll_if_woken(&mut cx) else {
                break;
            };
            let mut write =
                |event: Bytes| sse::SseEvent::message(&event).write(&mut this.pending_bytes);
            match step {
                RequestEvent::Message(message) => {
                    write(message);
                    continue;
                }
                RequestEvent::Response(final_response) => write(final_response.body.into_bytes()),
                RequestEvent::Cancelled(rest) => rest.into_iter().for_each(write),
            }
            this.running_request = None;
        }
        if !this.pending_bytes.is_empty() {
            this.heartbeat.reset();
            return Poll::Ready(Some(std::mem::take(&mut this.pending_bytes).into()));
        }
        if this.running_request.is_none() {
            return Poll::Ready(None);
        }
        let alive = this.heartbeat.poll(&mut cx, Instant::now());
        this.waiting_for_wake = alive.is_pending();
        alive.map(Some)
    }
}
