//! The handler, as the innermost service of its layers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{OperationOutcome, OperationResponse};
use crate::request::{
    BoxFuture, DispatchOutcome, RequestContext, ResponseResult, error::report_panic,
};

/// Runs a handler and ends its round trip. Layers see `input_required` as a response, and only a cancellation as none.
pub(super) struct HandlerService {
    call: Arc<RequestContext>,
    run: DispatchOutcome,
    /// True once the round trip has ended and only its state remains to be stored.
    input_required: bool,
}

impl HandlerService {
    pub(super) fn new(call: Arc<RequestContext>, run: DispatchOutcome) -> Self {
        Self {
            call,
            run,
            input_required: false,
        }
    }

    fn finish(&mut self, outcome: ResponseResult) -> OperationResponse {
        // The handler is dropped before its layers see the outcome.
        self.run = DispatchOutcome::Ready(Ok(Vec::new().into()));
        let success_outcome = if self.input_required {
            OperationOutcome::InputRequired
        } else if self.call.is_tool_error() {
            OperationOutcome::ToolError
        } else {
            OperationOutcome::Completed
        };
        OperationResponse::new(outcome, success_outcome)
    }
}

impl Future for HandlerService {
    type Output = OperationResponse;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OperationResponse> {
        let this = &mut *self;
        loop {
            let handler: &mut BoxFuture<ResponseResult> = match &mut this.run {
                DispatchOutcome::Ready(outcome) => {
                    let outcome = std::mem::replace(outcome, Ok(Vec::new().into()));
                    return Poll::Ready(this.finish(outcome));
                }
                DispatchOutcome::Handler(handler) => handler,
            };
            // A layer may poll from its own task, which must be woken by client requests sent elsewhere.
            this.call.outbox.register_handler(cx);
            let polled = match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx))) {
                Ok(polled) => polled,
                Err(panic) => Poll::Ready(Err(report_panic(&*panic))),
            };
            match (this.call.round_trip_end(), polled) {
                (Some(end), _) => {
                    this.input_required = true;
                    this.run = end;
                }
                (None, Poll::Ready(outcome)) => return Poll::Ready(this.finish(outcome)),
                (None, Poll::Pending) => return Poll::Pending,
            }
        }
    }
}
