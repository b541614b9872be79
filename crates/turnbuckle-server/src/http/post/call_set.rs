//! The calls of one POST, driven together: a single call, or those of a batch.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll},
};

use bytes::Bytes;

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
    /// Creates a set of one running call that this task has just polled; `first_message` is the message that it has
    /// already sent.
    pub(crate) fn single(
        running_request: RunningRequest,
        in_flight_guard: InFlightGuard,
        first_message: Option<Bytes>,
    ) -> Self {
        let call = RunningCall {
            running_request,
            _in_flight_guard: in_flight_guard,
        };
        Self {
            calls: vec![call],
            was_polled: first_message.is_none(),
            messages: first_message.into_iter().collect(),
            responses: Vec::new(),
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
                    self.calls.swap_remove(index);
                }
                RequestEvent::Cancelled(rest) => {
                    self.messages.extend(rest);
                    self.calls.swap_remove(index);
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
    pub(crate) fn take_responses(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        std::mem::take(&mut self.responses)
            .into_iter()
            .map(|final_response| final_response.body.into_bytes())
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
