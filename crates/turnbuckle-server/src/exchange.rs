//! One request being answered.
//!
//! Transports drive it and know nothing of tools: they get messages to send, then the answer.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tracing::Span;
use turnbuckle_protocol::{RequestId, RpcError, jsonrpc};

use crate::{
    context::Call,
    incident,
    outbox::Found,
    scopes::{Denied, Lacking},
    span, tasks,
    written::Written,
};

/// A future that a handler became.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A complete JSON-RPC response, or the error to make one of.
pub(crate) type Outcome = Result<Written, RpcError>;

/// What dispatch made of a request.
pub(crate) enum Run {
    /// Answered without waiting for anything.
    Ready(Outcome),
    /// A handler that has yet to run.
    Handler(BoxFuture<Outcome>),
}

/// What happened next in an exchange.
pub(crate) enum Step {
    /// A notification or a request for the peer.
    Message(Bytes),
    /// The answer; nothing follows.
    Answer(Answer),
    /// The exchange was cancelled and has no answer; what is left to say to the peer is in here.
    Cancelled(Vec<Bytes>),
}

/// The last word of an exchange.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The JSON-RPC response as it goes on the wire.
    pub(crate) body: Written,
    /// The status that Streamable HTTP gives it.
    pub(crate) status: u16,
    /// What the caller lacks, for which HTTP has more to say.
    pub(crate) lacking: Option<Box<Lacking>>,
}

/// One request, its handler and what it sends.
pub(crate) struct Exchange {
    pub(crate) call: Arc<Call>,
    run: Option<BoxFuture<Outcome>>,
    /// Whether the handler was run, waits, and has not been roused since.
    waits: bool,
    outcome: Option<Outcome>,
    /// Whether what runs sees to the end of a round itself.
    ends_rounds: bool,
    has_layers_inside: bool,
    /// Only where someone listens.
    span: Option<Box<Span>>,
    /// What the caller lacks, if that is all there is to say.
    lacking: Option<Box<Lacking>>,
}

impl Exchange {
    pub(crate) fn new(call: Arc<Call>, run: Run) -> Self {
        match run {
            Run::Ready(outcome) => Self {
                call,
                run: None,
                waits: false,
                outcome: Some(outcome),
                ends_rounds: false,
                has_layers_inside: false,
                span: None,
                lacking: None,
            },
            Run::Handler(run) => Self {
                call,
                run: Some(run),
                waits: false,
                outcome: None,
                ends_rounds: false,
                has_layers_inside: false,
                span: None,
                lacking: None,
            },
        }
    }

    /// A request that has no result.
    pub(crate) fn denied(call: Arc<Call>, denied: Denied) -> Self {
        match denied {
            Denied::Error(error) => Self::new(call, Run::Ready(Err(error))),
            Denied::Lacking(lacking) => {
                let mut exchange = Self::new(call, Run::Ready(Err(lacking.error.clone())));
                exchange.lacking = Some(lacking);
                exchange
            }
        }
    }

    /// Puts something around what runs, which then sees to the end of a round by itself.
    pub(crate) fn wrapped(mut self, wrap: impl FnOnce(Run) -> BoxFuture<Outcome>) -> Self {
        let run = match (self.run.take(), self.outcome.take()) {
            (Some(handler), _) => Run::Handler(handler),
            (None, Some(outcome)) => Run::Ready(outcome),
            (None, None) => return self,
        };
        self.run = Some(wrap(run));
        self.ends_rounds = true;
        self
    }

    /// Says that what runs has the server's layers around what matters: a task is begun at once, and its layers are around
    /// the work.
    pub(crate) fn with_layers_inside(mut self) -> Self {
        self.has_layers_inside = true;
        self
    }

    pub(crate) fn has_layers_inside(&self) -> bool {
        self.has_layers_inside
    }

    /// Runs inside a span from now on, and notes there how it ends.
    pub(crate) fn in_span(mut self, span: Span) -> Self {
        if !span.is_disabled() {
            self.span = Some(Box::new(span));
        }
        self
    }

    /// The id that the answer will bear.
    pub(crate) fn id(&self) -> &RequestId {
        &self.call.id
    }

    /// Says whether the answer is there without running a handler.
    pub(crate) fn is_settled(&self) -> bool {
        self.run.is_none()
    }

    /// Runs the handler once, and returns the answer if that is all there is to send.
    ///
    /// Otherwise the exchange goes on with [`poll_step`](Self::poll_step), which sees to it that someone is woken.
    pub(crate) fn answer_at_once(&mut self) -> Option<Written> {
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
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        self.rouse();
        self.poll_roused_step(cx)
    }

    /// Says that the handler is to be run again: something woke whoever asks, or somebody else asks from now on.
    pub(crate) fn rouse(&mut self) {
        self.waits = false;
    }

    /// Like [`poll_step`](Self::poll_step), but a handler that waits is run only if it was [roused](Self::rouse).
    pub(crate) fn poll_roused_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.run.is_some() && !self.waits {
            match self.call.outbox.attend() {
                Found::Message(message) => return Poll::Ready(Step::Message(message)),
                Found::Cancelled => return Poll::Ready(Step::Cancelled(self.abandon())),
                Found::Nothing => self.poll_handler(cx),
            }
        }
        if self.outcome.is_none() {
            return match self.call.outbox.watch(cx) {
                Found::Message(message) => Poll::Ready(Step::Message(message)),
                Found::Cancelled => Poll::Ready(Step::Cancelled(self.abandon())),
                Found::Nothing => Poll::Pending,
            };
        }
        if let Some(message) = self.call.outbox.pop_or_close() {
            return Poll::Ready(Step::Message(message));
        }
        match self.outcome.take() {
            Some(outcome) => {
                let (body, status) = self.finish(outcome);
                let lacking = self.lacking.take();
                Poll::Ready(Step::Answer(Answer {
                    body,
                    status,
                    lacking,
                }))
            }
            None => Poll::Pending,
        }
    }

    /// Says whether there is no step until the handler has run again.
    pub(crate) fn needs_handler(&self) -> bool {
        self.run.is_some() && self.call.outbox.is_empty()
    }

    /// Waits for the next step.
    pub(crate) async fn step(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }

    fn poll_handler(&mut self, cx: &mut Context<'_>) {
        let _inside = self.span.as_deref().map(Span::enter);
        while let Some(run) = &mut self.run {
            let outcome = match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
                Ok(polled) if self.call.turned().is_some() => {
                    go_on_as_task(&self.call, self.run.take(), polled)
                }
                // An open question ends the round, even if the handler would do without its answer: it is dropped, and
                // runs again with it.
                Ok(polled) => match (end_of_round(&self.call, self.ends_rounds), polled) {
                    (Some(Run::Ready(outcome)), _) => outcome,
                    (Some(Run::Handler(last)), _) => {
                        self.run = Some(last);
                        continue;
                    }
                    (None, Poll::Ready(outcome)) => outcome,
                    (None, Poll::Pending) => {
                        self.waits = true;
                        return;
                    }
                },
                Err(panic) => Err(incident::panicked(&*panic)),
            };
            self.run = None;
            self.outcome = Some(outcome);
        }
    }

    /// Drops the handler and returns what it still had to say.
    fn abandon(&mut self) -> Vec<Bytes> {
        self.stop();
        std::iter::from_fn(|| self.call.outbox.pop_or_close()).collect()
    }

    /// Drops the handler inside its span.
    fn stop(&mut self) {
        let inside = self.span.as_deref().map(Span::enter);
        self.run = None;
        drop(inside);
        if let Some(span) = self.span.take() {
            span::cancel(&span);
        }
    }

    /// The response as it goes on the wire, and its HTTP status.
    fn finish(&mut self, outcome: Outcome) -> (Written, u16) {
        if let Some(span) = self.span.take() {
            span::end(&span, &self.call, &outcome);
        }
        // Whatever is around a handler may have found another answer.
        self.lacking
            .take_if(|lacking| outcome.as_ref().err() != Some(&lacking.error));
        match outcome {
            Ok(body) => (body, 200),
            Err(error) => {
                let status = self.call.caller.rules.status(error.code);
                (error_response(Some(&self.call.id), &error).into(), status)
            }
        }
    }
}

/// Hands a handler over to a task of its own, and answers with that.
fn go_on_as_task(
    call: &Arc<Call>,
    run: Option<BoxFuture<Outcome>>,
    polled: Poll<Outcome>,
) -> Outcome {
    let (Some((record, task)), Some(run)) = (call.turned(), run) else {
        return Err(RpcError::internal("no task"));
    };
    let handler = match polled {
        Poll::Pending => run,
        Poll::Ready(outcome) => Box::pin(std::future::ready(outcome)),
    };
    tasks::go_on(call.clone(), task.clone(), handler);
    tasks::created(call, record)
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // One that came to its end has closed it already.
        if self.run.is_some() || self.outcome.is_some() {
            self.stop();
            self.call.outbox.close();
        }
    }
}

/// The outcome of a round that ended with open questions, unless that is for someone else to see.
fn end_of_round(call: &Call, seen_to: bool) -> Option<Run> {
    if seen_to { None } else { call.end_of_round() }
}

impl Answer {
    /// An error response.
    pub(crate) fn error(id: Option<&RequestId>, error: &RpcError, status: u16) -> Self {
        Self {
            body: error_response(id, error).into(),
            status,
            lacking: None,
        }
    }
}

fn error_response(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    jsonrpc::write_error(&mut body, id, error);
    body
}
