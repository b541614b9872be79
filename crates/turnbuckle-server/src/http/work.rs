//! The calls of one POST, driven together: one, or those of a batch.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll},
};

use bytes::Bytes;

use super::presence::Running;
use crate::{
    exchange::{Answer, Exchange, Step},
    together,
};

/// Calls that are answered together.
pub(super) struct Work {
    calls: Vec<Call>,
    /// What the calls have to say, in order.
    messages: VecDeque<Bytes>,
    answers: Vec<Answer>,
    batch: bool,
    /// The call that is looked at first, so that one with much to say does not hold up the others.
    turn: usize,
}

struct Call {
    exchange: Exchange,
    /// Lets the client cancel it, and keeps its id from being used twice.
    _running: Running,
}

/// What happened next.
pub(super) enum Next {
    /// A message came; it is to be sent before anything else.
    Message(Bytes),
    /// One of the calls is answered.
    Answered,
    /// A call asks for the connection to end while it goes on.
    HangUp,
    /// All calls are over.
    Done,
}

impl Work {
    /// One call that is already under way; `said` is what it said so far.
    pub(super) fn one(exchange: Exchange, running: Running, said: Option<Bytes>) -> Self {
        let call = Call {
            exchange,
            _running: running,
        };
        Self {
            calls: vec![call],
            messages: said.into_iter().collect(),
            answers: Vec::new(),
            batch: false,
            turn: 0,
        }
    }

    /// An empty batch.
    pub(super) fn batch() -> Self {
        Self {
            calls: Vec::new(),
            messages: VecDeque::new(),
            answers: Vec::new(),
            batch: true,
            turn: 0,
        }
    }

    /// Adds a call.
    pub(super) fn push(&mut self, exchange: Exchange, running: Running) {
        self.calls.push(Call {
            exchange,
            _running: running,
        });
    }

    /// Adds what is answered already.
    pub(super) fn push_answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// Gives back a message that is to be sent later.
    pub(super) fn put_back(&mut self, message: Bytes) {
        self.messages.push_front(message);
    }

    /// Says whether there is nothing to answer.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.answers.is_empty()
    }

    /// Waits for what happens next.
    pub(super) async fn next(&mut self) -> Next {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Runs the calls until something happens.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(message) = self.messages.pop_front() {
            return Poll::Ready(Next::Message(message));
        }
        let count = self.calls.len();
        for offset in 0..count {
            let index = (self.turn + offset) % count;
            let exchange = &mut self.calls[index].exchange;
            if exchange.call.outbox.takes_hang_up() {
                return Poll::Ready(Next::HangUp);
            }
            let Poll::Ready(step) = exchange.poll_step(cx) else {
                continue;
            };
            self.turn = index;
            match step {
                Step::Message(message) => {
                    self.turn += 1;
                    return Poll::Ready(Next::Message(message));
                }
                Step::Answer(answer) => {
                    let answer = self.fitting(index, answer);
                    self.answers.push(answer);
                    self.calls.swap_remove(index);
                }
                Step::Cancelled(rest) => {
                    self.messages.extend(rest);
                    self.calls.swap_remove(index);
                }
            }
            return Poll::Ready(Next::Answered);
        }
        if self.calls.is_empty() {
            Poll::Ready(Next::Done)
        } else {
            Poll::Pending
        }
    }

    /// The answer to a call, or an error if there is no room for it beside the others of its array.
    fn fitting(&self, index: usize, answer: Answer) -> Answer {
        let held = self.answers.iter().map(|answer| answer.body.len()).sum();
        if together::is_too_much(held, answer.body.len()) {
            together::too_much(self.calls[index].exchange.id())
        } else {
            answer
        }
    }

    /// Takes the answers that came so far.
    pub(super) fn take_answers(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        std::mem::take(&mut self.answers)
            .into_iter()
            .map(|answer| answer.body.into_bytes())
    }

    /// All answers as one body; `None` if there is none, because everything was cancelled.
    pub(super) fn into_answer(mut self) -> Option<Answer> {
        if !self.batch {
            return self.answers.pop();
        }
        if self.answers.is_empty() {
            return None;
        }
        let length: usize = self
            .answers
            .iter()
            .map(|answer| answer.body.len() + 1)
            .sum();
        let mut body = Vec::with_capacity(length + 1);
        for answer in &self.answers {
            body.push(if body.is_empty() { b'[' } else { b',' });
            let pieces = answer.body.pieces();
            pieces
                .iter()
                .for_each(|piece| body.extend_from_slice(piece));
        }
        body.push(b']');
        Some(Answer {
            body: body.into(),
            status: 200,
            lacking: None,
        })
    }
}
