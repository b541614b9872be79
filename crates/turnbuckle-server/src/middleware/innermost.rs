//! The handler as its layers see it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Answer, Ending};
use crate::{
    context::Call,
    exchange::{BoxFuture, Outcome, Run},
    incident,
};

/// Runs a handler, and ends its round where it asks: layers see an open question as an answer like any other, and only a
/// cancellation as none.
pub(super) struct Innermost {
    call: Arc<Call>,
    run: Run,
    /// Whether the round is over, and only its end has yet to be stored.
    asked: bool,
}

impl Innermost {
    pub(super) fn new(call: Arc<Call>, run: Run) -> Self {
        Self {
            call,
            run,
            asked: false,
        }
    }

    fn settle(&mut self, outcome: Outcome) -> Answer {
        // What a handler holds is let go before its layers learn of its end.
        self.run = Run::Ready(Ok(Vec::new().into()));
        let otherwise = if self.asked {
            Ending::InputRequired
        } else if self.call.is_tool_error() {
            Ending::ToolError
        } else {
            Ending::Completed
        };
        Answer::new(outcome, otherwise)
    }
}

impl Future for Innermost {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        loop {
            let handler: &mut BoxFuture<Outcome> = match &mut this.run {
                Run::Ready(outcome) => {
                    let outcome = std::mem::replace(outcome, Ok(Vec::new().into()));
                    return Poll::Ready(this.settle(outcome));
                }
                Run::Handler(handler) => handler,
            };
            // A layer may poll us from a task of its own, which has to learn of a question that is asked elsewhere.
            this.call.outbox.watch_inside(cx);
            let polled = match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx))) {
                Ok(polled) => polled,
                Err(panic) => Poll::Ready(Err(incident::panicked(&*panic))),
            };
            match (this.call.end_of_round(), polled) {
                (Some(end), _) => {
                    this.asked = true;
                    this.run = end;
                }
                (None, Poll::Ready(outcome)) => return Poll::Ready(this.settle(outcome)),
                (None, Poll::Pending) => return Poll::Pending,
            }
        }
    }
}
