//! Running one request: on the spot if it is ready, else as a task.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    batch::Slot,
    connection::{Connection, busy},
};
use crate::{
    exchange::{Exchange, Step},
    lifecycle::live::Running,
};

/// Where an answer goes.
pub(super) enum Outlet {
    /// On a line of its own.
    Line,
    /// Into an array with others.
    Batch(Slot),
}

impl Connection {
    /// Answers at once what is ready, and lets run what is not.
    pub(super) fn run(self: &Arc<Self>, mut exchange: Exchange, outlet: Outlet) {
        if !exchange.is_settled() && self.calls.available_permits() == 0 {
            return self.fail(exchange.id(), &busy("requests"), outlet);
        }
        match exchange.answer_at_once() {
            Some(body) => {
                match outlet {
                    Outlet::Line => self.sink.append(&body.pieces()),
                    Outlet::Batch(slot) => slot.answer(exchange.id(), body.into_bytes()),
                }
                answered(&exchange);
            }
            None => self.spawn(exchange, outlet),
        }
    }

    fn spawn(self: &Arc<Self>, exchange: Exchange, outlet: Outlet) {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return self.fail(exchange.id(), &busy("requests"), outlet);
        };
        match self.live.begin(&exchange.call) {
            Ok(running) => {
                let task = drive(self.clone(), exchange, outlet, running, permit);
                drop(tokio::spawn(task));
            }
            Err(error) => self.fail(exchange.id(), &error, outlet),
        }
    }

    pub(super) fn send(&self, outlet: Outlet, body: Bytes) {
        match outlet {
            Outlet::Line => self.sink.append(&[&body]),
            Outlet::Batch(slot) => slot.put(body),
        }
    }
}

/// Runs a call to its end.
async fn drive(
    connection: Arc<Connection>,
    mut exchange: Exchange,
    outlet: Outlet,
    running: Running,
    _permit: OwnedSemaphorePermit,
) {
    loop {
        match exchange.step().await {
            Step::Message(message) => {
                connection.sink.room().await;
                connection.sink.push(&message);
            }
            Step::Answer(answer) => {
                // First: whoever has seen the answer may use the id again.
                drop(running);
                match outlet {
                    Outlet::Line => connection.sink.append(&answer.body.pieces()),
                    Outlet::Batch(slot) => slot.answer(exchange.id(), answer.body.into_bytes()),
                }
                connection.sink.wake();
                return answered(&exchange);
            }
            Step::Cancelled(rest) => {
                drop(running);
                // Questions that are still open are taken back. Where nothing is asked this way, the peer that
                // cancelled wants to hear nothing more.
                if exchange.call.caller.live.is_some() {
                    rest.iter()
                        .for_each(|message| connection.sink.push(message));
                }
                return;
            }
        }
    }
}

/// Notes that a session had an answer after its handshake, from which on it may be told of changes.
fn answered(exchange: &Exchange) {
    let caller = &exchange.call.caller;
    if let (true, Some(live)) = (caller.may_be_asked, &caller.live) {
        live.has_answered();
    }
}
