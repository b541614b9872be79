//! Runs one request: inline if it is ready, else as a task.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    batch::BatchSlot,
    connection::{NdjsonConnection, busy},
};
use crate::{
    lifecycle::runtime::InFlightGuard,
    request::{RequestEvent, RunningRequest},
};

/// The target of a response.
pub(super) enum ResponseTarget {
    /// A separate line.
    Line,
    /// A slot of a batch.
    Batch(BatchSlot),
}

impl NdjsonConnection {
    /// Responds immediately if possible, else spawns the request.
    pub(super) fn run(
        self: &Arc<Self>,
        mut running_request: RunningRequest,
        target: ResponseTarget,
    ) {
        if !running_request.has_result() && self.is_busy() {
            return self.send_error(running_request.id(), &busy("requests"), target);
        }
        match running_request.try_finish_now() {
            Some(body) => {
                match target {
                    ResponseTarget::Line => self.queue.append(&body.pieces()),
                    ResponseTarget::Batch(slot) => {
                        slot.respond(running_request.id(), body.into_bytes());
                    }
                }
                note_first_response(&running_request);
            }
            None => self.spawn(running_request, target),
        }
    }

    fn spawn(self: &Arc<Self>, running_request: RunningRequest, target: ResponseTarget) {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return self.send_error(running_request.id(), &busy("requests"), target);
        };
        match self.runtime.register(&running_request.call) {
            Ok(running) => {
                let task = drive(self.clone(), running_request, target, running, permit);
                drop(tokio::spawn(task));
            }
            Err(error) => self.send_error(running_request.id(), &error, target),
        }
    }

    pub(super) fn send(&self, target: ResponseTarget, body: Bytes) {
        match target {
            ResponseTarget::Line => self.queue.append(&[&body]),
            ResponseTarget::Batch(slot) => slot.put(body),
        }
    }
}

/// Runs a request to completion.
async fn drive(
    connection: Arc<NdjsonConnection>,
    mut running_request: RunningRequest,
    target: ResponseTarget,
    running: InFlightGuard,
    _permit: OwnedSemaphorePermit,
) {
    loop {
        match running_request.next_event().await {
            RequestEvent::Message(message) => {
                connection.queue.wait_for_room().await;
                connection.queue.push(&message);
            }
            RequestEvent::Response(response) => {
                // Released first: the peer may reuse the id as soon as it has the response.
                drop(running);
                match target {
                    ResponseTarget::Line => connection.queue.append(&response.body.pieces()),
                    ResponseTarget::Batch(slot) => {
                        slot.respond(running_request.id(), response.body.into_bytes());
                    }
                }
                connection.queue.wake();
                return note_first_response(&running_request);
            }
            RequestEvent::Cancelled(rest) => {
                drop(running);
                // Cancels pending client requests. A stateless peer that cancelled gets no further messages.
                if running_request.call.origin.runtime.is_some() {
                    rest.iter()
                        .for_each(|message| connection.queue.push(message));
                }
                return;
            }
        }
    }
}

/// Records the first response of a session, which enables change notifications.
fn note_first_response(running_request: &RunningRequest) {
    let caller = &running_request.call.origin;
    if let (true, Some(runtime)) = (caller.accepts_client_requests, &caller.runtime) {
        runtime.note_first_response();
    }
}
