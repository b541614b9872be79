//! The calls of one POST, driven together: a single call, or those of a batch.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use turnbuckle_protocol::RequestId;

use crate::{
    lifecycle::runtime::InFlightGuard,
    request::{FinalResponse, RequestEvent, RunningRequest, response},
};

/// Calls with responses that are sent together.
pub(crate) struct CallSet {
    calls: Vec<RunningCall>,
    /// Messages to send before the responses, in order.
    messages: VecDeque<Bytes>,
    responses: Vec<FinalResponse>,
    /// The ids of the calls of a batch that have finished, until they are taken.
    answered: Vec<RequestId>,
    is_batch: bool,
    /// Index of the call to poll first, so that a call with many messages does not starve the others.
    next_index: usize,
    /// Set if this task has just polled the only call, so that its waker is registered.
    was_polled: bool,
}

struct RunningCall {
    running_request: RunningRequest,
    /// Registers the call for cancellation, and reserves its id.
    _in_flight_guard: InFlightGuard,
}

/// An event of a [`CallSet`].
pub(crate) enum CallSetEvent {
    /// A message to send before anything else.
    Message(Bytes),
    /// One of the calls has finished.
    CallFinished,
    /// A call requests that its stream be closed while it continues.
    CloseStream,
    /// All calls have finished.
    Done,
}

impl CallSet {
    /// Creates a set of one running call that this task has just polled; `messages` are those that it has already sent.
    pub(crate) fn single(
        running_request: RunningRequest,
        in_flight_guard: InFlightGuard,
        messages: Vec<Bytes>,
    ) -> Self {
        let call = RunningCall {
            running_request,
            _in_flight_guard: in_flight_guard,
        };
        Self {
            calls: vec![call],
            was_polled: messages.is_empty(),
            messages: messages.into(),
            responses: Vec::new(),
            answered: Vec::new(),
            is_batch: false,
            next_index: 0,
        }
    }

    /// Creates an empty batch.
    pub(crate) fn batch() -> Self {
        Self {
            calls: Vec::new(),
            messages: VecDeque::new(),
            responses: Vec::new(),
            answered: Vec::new(),
            is_batch: true,
            next_index: 0,
            was_polled: false,
        }
    }

    /// Adds a call.
    pub(crate) fn push(&mut self, running_request: RunningRequest, in_flight_guard: InFlightGuard) {
        self.calls.push(RunningCall {
            running_request,
            _in_flight_guard: in_flight_guard,
        });
    }

    /// Adds a response that is already complete.
    pub(crate) fn push_response(&mut self, final_response: FinalResponse) {
        self.responses.push(final_response);
    }

    /// Puts a message back, to be returned first.
    pub(crate) fn requeue(&mut self, message: Bytes) {
        self.messages.push_front(message);
    }

    /// Returns whether there are neither calls nor responses.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.responses.is_empty()
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> CallSetEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls the calls until there is an event.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<CallSetEvent> {
        let was_polled = std::mem::take(&mut self.was_polled);
        if let Some(message) = self.messages.pop_front() {
            return Poll::Ready(CallSetEvent::Message(message));
        }
        let count = self.calls.len();
        for offset in 0..count {
            let index = (self.next_index + offset) % count;
            let running_request = &mut self.calls[index].running_request;
            if running_request.call.outbox.take_close_stream() {
                return Poll::Ready(CallSetEvent::CloseStream);
            }
            if !was_polled {
                running_request.mark_woken();
            }
            let Poll::Ready(step) = running_request.poll_if_woken(cx) else {
                continue;
            };
            self.next_index = index;
            match step {
                RequestEvent::Message(message) => {
                    self.next_index += 1;
                    return Poll::Ready(CallSetEvent::Message(message));
                }
                RequestEvent::Response(final_response) => {
                    let final_response = self.enforce_batch_limit(index, final_response);
                    self.responses.push(final_response);
                    self.remove_call(index);
                }
                RequestEvent::Cancelled(rest) => {
                    self.messages.extend(rest);
                    self.remove_call(index);
                }
            }
            return Poll::Ready(CallSetEvent::CallFinished);
        }
        if self.calls.is_empty() {
            Poll::Ready(CallSetEvent::Done)
        } else {
            Poll::Pending
        }
    }

    /// Returns the next event that is ready without running a handler.
    pub(crate) fn next_ready(&mut self) -> Option<CallSetEvent> {
        let needs_handler = |call: &RunningCall| call.running_request.needs_handler();
        if self.messages.is_empty() && self.calls.iter().any(needs_handler) {
            return None;
        }
        match self.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn remove_call(&mut self, index: usize) {
        let call = self.calls.swap_remove(index);
        if self.is_batch {
            self.answered.push(call.running_request.id().clone());
        }
    }

    /// Returns the ids of the calls that have not finished.
    pub(crate) fn running_ids(&self) -> Vec<RequestId> {
        let calls = self.calls.iter();
        calls
            .map(|call| call.running_request.id().clone())
            .collect()
    }

    /// Takes the ids of the calls of a batch that have finished since the last call.
    pub(crate) fn take_answered(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.answered)
    }

    /// Returns the response of a call, or an error if the batch would exceed its size limit.
    fn enforce_batch_limit(&self, index: usize, final_response: FinalResponse) -> FinalResponse {
        let collected = self
            .responses
            .iter()
            .map(|final_response| final_response.body.len())
            .sum();
        if response::exceeds_batch_limit(collected, final_response.body.len()) {
            response::batch_limit_error(self.calls[index].running_request.id())
        } else {
            final_response
        }
    }

    /// Takes the responses collected so far.
    pub(crate) fn take_responses(&mut self) -> Vec<FinalResponse> {
        std::mem::take(&mut self.responses)
    }

    /// Puts responses back that could not be sent on a stream.
    pub(crate) fn restore_responses(&mut self, mut responses: Vec<FinalResponse>) {
        responses.append(&mut self.responses);
        self.responses = responses;
    }

    /// Returns all responses as one body, or `None` if every call was cancelled.
    pub(crate) fn into_response(mut self) -> Option<FinalResponse> {
        if !self.is_batch {
            return self.responses.pop();
        }
        if self.responses.is_empty() {
            return None;
        }
        let length: usize = self
            .responses
            .iter()
            .map(|final_response| final_response.body.len() + 1)
            .sum();
        let mut body = Vec::with_capacity(length + 1);
        for final_response in &self.responses {
            body.push(if body.is_empty() { b'[' } else { b',' });
            let chunks = final_response.body.pieces();
            chunks
                .iter()
                .for_each(|chunk| body.extend_from_slice(chunk));
        }
        body.push(b']');
        Some(FinalResponse {
            body: body.into(),
            status: 200,
            rejection: None,
        })
    }
}
