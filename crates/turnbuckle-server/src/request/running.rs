//! A request being run to its response.
//!
//! Transports drive it without knowing about tools: they get messages to send, then the response.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tracing::Span;
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{self, Request},
};
use turnbuckle_store::SessionUpdate;

use super::{RequestContext, outbox::OutboxEvent};
use crate::{
    Server,
    catalog::scopes::{HttpRejection, RequestDenied},
    dispatch,
    lifecycle::{RequestOrigin, session::SessionRoute, stateless::RequestHeaders},
    middleware,
    request::{
        error::report_panic,
        response::{EncodedResponse, ResponseWriter},
        span,
    },
    tasks,
};

/// A boxed handler future.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An encoded response, or the error to respond with.
pub(crate) type ResponseResult = Result<EncodedResponse, RpcError>;

/// The outcome of dispatching a request.
pub(crate) enum DispatchOutcome {
    /// The result is ready.
    Ready(ResponseResult),
    /// A handler that has not run yet.
    Handler(BoxFuture<ResponseResult>),
}

/// The next event of a running request.
pub(crate) enum RequestEvent {
    /// A notification or a request for the peer.
    Message(Bytes),
    /// The response. It is the last event.
    Response(FinalResponse),
    /// Cancelled without a response, with the remaining messages for the peer.
    Cancelled(Vec<Bytes>),
}

/// The final response.
#[derive(Debug)]
pub(crate) struct FinalResponse {
    /// The encoded JSON-RPC response.
    pub(crate) body: EncodedResponse,
    /// The HTTP status.
    pub(crate) status: u16,
    /// The HTTP status and headers, if they do not follow from the error.
    pub(crate) rejection: Option<Box<HttpRejection>>,
}

/// A request, its handler and its messages.
pub(crate) struct RunningRequest {
    pub(crate) call: Arc<RequestContext>,
    run: Option<BoxFuture<ResponseResult>>,
    /// True if the handler is pending and was not woken since.
    awaiting_wake: bool,
    outcome: Option<ResponseResult>,
    /// True if the running future ends round trips itself.
    handles_round_trips: bool,
    has_layers_inside: bool,
    /// Set only if tracing is enabled.
    span: Option<Box<Span>>,
    /// The HTTP status and headers of an error, if they do not follow from it.
    rejection: Option<Box<HttpRejection>>,
    /// The change of the session that the request makes. Boxed because it is rare.
    session_update: Option<Box<SessionUpdate>>,
}

impl RunningRequest {
    pub(crate) fn new(call: Arc<RequestContext>, run: DispatchOutcome) -> Self {
        match run {
            DispatchOutcome::Ready(outcome) => Self {
                call,
                run: None,
                awaiting_wake: false,
                outcome: Some(outcome),
                handles_round_trips: false,
                has_layers_inside: false,
                span: None,
                rejection: None,
                session_update: None,
            },
            DispatchOutcome::Handler(run) => Self {
                call,
                run: Some(run),
                awaiting_wake: false,
                outcome: None,
                handles_round_trips: false,
                has_layers_inside: false,
                span: None,
                rejection: None,
                session_update: None,
            },
        }
    }

    /// Starts a request with a validated origin and a method of its revision.
    pub(crate) fn start(
        server: &Server,
        request: &Request<'_>,
        origin: RequestOrigin,
        request_headers: Option<&dyn RequestHeaders>,
    ) -> Self {
        if span::is_disabled() && server.layers().is_empty() {
            return dispatch::route(server, request, origin, request_headers);
        }
        let span = span::for_request(server, request, &origin);
        let running_request =
            span.in_scope(|| dispatch::route(server, request, origin, request_headers));
        middleware::wrap(running_request.in_span(span), request)
    }

    /// Starts a request of a session. Its [session update](Self::take_session_update) must be stored before it runs.
    // Inlined, so that origin and route are not moved once more.
    #[inline(always)]
    pub(crate) fn start_in_session(
        server: &Server,
        request: &Request<'_>,
        origin: RequestOrigin,
        route: SessionRoute,
    ) -> Self {
        match route {
            SessionRoute::Dispatch => Self::start(server, request, origin, None),
            SessionRoute::DispatchAs(method) => {
                let renamed = Request {
                    id: request.id.clone(),
                    method: method.into(),
                    params: request.params.clone(),
                };
                Self::start(server, &renamed, origin, None)
            }
            SessionRoute::Relay(update) => {
                Self::start(server, request, origin, None).with_session_update(update)
            }
            SessionRoute::Empty(update) => {
                let span = span::for_request(server, request, &origin);
                let call = RequestContext::for_request(server, request, origin);
                let outcome = Ok(ResponseWriter::new(&call).empty());
                let empty = Self::new(call, DispatchOutcome::Ready(outcome));
                empty.with_session_update(update).in_span(span)
            }
            SessionRoute::Denied(denied) => {
                let span = span::for_request(server, request, &origin);
                let call = RequestContext::for_request(server, request, origin);
                Self::denied(call, denied).in_span(span)
            }
            SessionRoute::UnknownMethod => {
                let error = RpcError::method_not_found(&request.method);
                let call = RequestContext::for_request(server, request, origin);
                Self::new(call, DispatchOutcome::Ready(Err(error)))
            }
        }
    }

    fn with_session_update(mut self, update: Option<SessionUpdate>) -> Self {
        self.session_update = update.map(Box::new);
        self
    }

    /// Takes the change of the session that the request makes.
    pub(crate) fn take_session_update(&mut self) -> Option<Box<SessionUpdate>> {
        self.session_update.take()
    }

    /// Creates a request that is denied.
    pub(crate) fn denied(call: Arc<RequestContext>, denied: RequestDenied) -> Self {
        match denied {
            RequestDenied::Error(error) => Self::new(call, DispatchOutcome::Ready(Err(error))),
            RequestDenied::InsufficientScope(rejection) => {
                let mut running_request =
                    Self::new(call, DispatchOutcome::Ready(Err(rejection.error.clone())));
                running_request.rejection = Some(rejection);
                running_request
            }
        }
    }

    /// Wraps the handler in a future that ends round trips itself.
    pub(crate) fn wrap(
        mut self,
        wrap: impl FnOnce(DispatchOutcome) -> BoxFuture<ResponseResult>,
    ) -> Self {
        let run = match (self.run.take(), self.outcome.take()) {
            (Some(handler), _) => DispatchOutcome::Handler(handler),
            (None, Some(outcome)) => DispatchOutcome::Ready(outcome),
            (None, None) => return self,
        };
        self.run = Some(wrap(run));
        self.handles_round_trips = true;
        self
    }

    /// Marks the handler as already wrapped in layers: a task starts immediately, and the layers wrap its work.
    pub(crate) fn with_layers_inside(mut self) -> Self {
        self.has_layers_inside = true;
        self
    }

    pub(crate) fn has_layers_inside(&self) -> bool {
        self.has_layers_inside
    }

    /// Runs in a span, and records the result there.
    pub(crate) fn in_span(mut self, span: Span) -> Self {
        if !span.is_disabled() {
            self.span = Some(Box::new(span));
        }
        self
    }

    /// The request id.
    pub(crate) fn id(&self) -> &RequestId {
        &self.call.id
    }

    /// Returns whether the result is available without running a handler.
    pub(crate) fn has_result(&self) -> bool {
        self.run.is_none()
    }

    /// Polls the handler once, and returns the response if nothing else has to be sent.
    ///
    /// Otherwise continue with [`poll_event`](Self::poll_event), which registers a waker.
    pub(crate) fn try_finish_now(&mut self) -> Option<EncodedResponse> {
        if self.run.is_some() {
            self.poll_handler(&mut Context::from_waker(Waker::noop()));
        }
        if !self.call.outbox.is_empty() {
            return None;
        }
        let outcome = self.outcome.take()?;
        self.call.outbox.close();
        Some(self.finish(outcome).0)
    }

    /// Runs the handler until there is something to send.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<RequestEvent> {
        self.mark_woken();
        self.poll_if_woken(cx)
    }

    /// Marks the handler for another poll, after a wake or a change of the driving task.
    pub(crate) fn mark_woken(&mut self) {
        self.awaiting_wake = false;
    }

    /// Like [`poll_event`](Self::poll_event), but polls a pending handler only after [`mark_woken`](Self::mark_woken).
    pub(crate) fn poll_if_woken(&mut self, cx: &mut Context<'_>) -> Poll<RequestEvent> {
        if self.run.is_some() && !self.awaiting_wake {
            match self.call.outbox.begin_poll() {
                OutboxEvent::Message(message) => {
                    return Poll::Ready(RequestEvent::Message(message));
                }
                OutboxEvent::Cancelled => {
                    return Poll::Ready(RequestEvent::Cancelled(self.cancel()));
                }
                OutboxEvent::Empty => self.poll_handler(cx),
            }
        }
        if self.outcome.is_none() {
            return match self.call.outbox.register_driver(cx) {
                OutboxEvent::Message(message) => Poll::Ready(RequestEvent::Message(message)),
                OutboxEvent::Cancelled => Poll::Ready(RequestEvent::Cancelled(self.cancel())),
                OutboxEvent::Empty => Poll::Pending,
            };
        }
        if let Some(message) = self.call.outbox.pop_or_close() {
            return Poll::Ready(RequestEvent::Message(message));
        }
        match self.outcome.take() {
            Some(outcome) => {
                let (body, status) = self.finish(outcome);
                let rejection = self.rejection.take();
                Poll::Ready(RequestEvent::Response(FinalResponse {
                    body,
                    status,
                    rejection,
                }))
            }
            None => Poll::Pending,
        }
    }

    /// Returns whether the next event requires another poll of the handler.
    pub(crate) fn needs_handler(&self) -> bool {
        self.run.is_some() && self.call.outbox.is_empty()
    }

    /// Waits for the next event.
    pub(crate) async fn next_event(&mut self) -> RequestEvent {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Waits for the next event of a request that this task has just polled, so that its waker is registered: the
    /// handler is not polled again before it is woken.
    pub(crate) async fn next_event_after_wake(&mut self) -> RequestEvent {
        let mut was_polled = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut was_polled, true) {
                self.mark_woken();
            }
            self.poll_if_woken(cx)
        })
        .await
    }

    fn poll_handler(&mut self, cx: &mut Context<'_>) {
        let _inside = self.span.as_deref().map(Span::enter);
        while let Some(run) = &mut self.run {
            let outcome = match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
                Ok(polled) if self.call.promoted_task().is_some() => {
                    continue_as_task(&self.call, self.run.take(), polled)
                }
                // An open client request ends the round trip even if the handler could continue: it is dropped and runs
                // again with the response.
                Ok(polled) => {
                    match (round_trip_end(&self.call, self.handles_round_trips), polled) {
                        (Some(DispatchOutcome::Ready(outcome)), _) => outcome,
                        (Some(DispatchOutcome::Handler(last)), _) => {
                            self.run = Some(last);
                            continue;
                        }
                        (None, Poll::Ready(outcome)) => outcome,
                        (None, Poll::Pending) => {
                            self.awaiting_wake = true;
                            return;
                        }
                    }
                }
                Err(panic) => Err(report_panic(&*panic)),
            };
            self.run = None;
            self.outcome = Some(outcome);
        }
    }

    /// Drops the handler and returns its remaining messages.
    fn cancel(&mut self) -> Vec<Bytes> {
        self.stop();
        std::iter::from_fn(|| self.call.outbox.pop_or_close()).collect()
    }

    /// Drops the handler inside its span.
    fn stop(&mut self) {
        let inside = self.span.as_deref().map(Span::enter);
        self.run = None;
        drop(inside);
        if let Some(span) = self.span.take() {
            span::record_cancellation(&span);
        }
    }

    /// Returns the encoded response and its HTTP status.
    fn finish(&mut self, outcome: ResponseResult) -> (EncodedResponse, u16) {
        if let Some(span) = self.span.take() {
            span::record_result(&span, &self.call, &outcome);
        }
        match outcome {
            Ok(body) => {
                self.rejection = None;
                (body, 200)
            }
            Err(error) => {
                let rejection = self.rejection.take();
                let rejection = rejection.or_else(|| self.call.take_rejection());
                // A layer may have replaced the error.
                self.rejection = rejection.filter(|rejection| rejection.error == error);
                let status = self.call.origin.rules.status(error.code);
                (error_response(Some(&self.call.id), &error).into(), status)
            }
        }
    }
}

/// Moves the handler to a task, and responds with the task.
fn continue_as_task(
    call: &Arc<RequestContext>,
    run: Option<BoxFuture<ResponseResult>>,
    polled: Poll<ResponseResult>,
) -> ResponseResult {
    let (Some((record, task)), Some(run)) = (call.promoted_task(), run) else {
        return Err(RpcError::internal("the call was not promoted to a task"));
    };
    let handler = match polled {
        Poll::Pending => run,
        Poll::Ready(outcome) => Box::pin(std::future::ready(outcome)),
    };
    tasks::resume(call.clone(), task.clone(), handler);
    tasks::created(call, record)
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        // A finished request has closed its outbox already.
        if self.run.is_some() || self.outcome.is_some() {
            self.stop();
            self.call.outbox.close();
        }
    }
}

/// Returns the end of the round trip, unless the running future handles it.
fn round_trip_end(call: &RequestContext, handled_elsewhere: bool) -> Option<DispatchOutcome> {
    if handled_elsewhere {
        None
    } else {
        call.round_trip_end()
    }
}

impl FinalResponse {
    /// Creates an error response.
    pub(crate) fn error(id: Option<&RequestId>, error: &RpcError, status: u16) -> Self {
        Self {
            body: error_response(id, error).into(),
            status,
            rejection: None,
        }
    }
}

fn error_response(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    jsonrpc::write_error(&mut body, id, error);
    body
}
