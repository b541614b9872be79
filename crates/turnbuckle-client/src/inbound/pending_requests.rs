//! Requests that wait for a response, requests that were cancelled, and messages sent in the background.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    time::timeout,
};
use turnbuckle_protocol::RequestId;

use crate::{
    error::TransportError,
    inbound::{
        InboundRouter,
        message::{InboundMessage, RawResponse},
        observers::Anomaly,
    },
    sync::lock,
};

/// The outcome of a request.
pub(crate) type PendingResult = Result<RawResponse, TransportError>;

/// The pending requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests(Mutex<PendingState>);

#[derive(Debug, Default)]
struct PendingState {
    open: HashMap<RequestId, oneshot::Sender<PendingResult>, BuildHasherDefault<OwnIdHasher>>,
    /// Whether the server has sent a valid message.
    received_any: bool,
    /// The reason why the connection has ended.
    ended: Option<TransportError>,
}

/// Hashes the ids of our own requests. They are counted, so a server cannot choose ids that collide.
#[derive(Debug, Default)]
struct OwnIdHasher(u64);

impl Hasher for OwnIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The fractional part of the golden ratio spreads consecutive numbers over all bits.
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_i64(number as i64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl PendingRequests {
    /// Registers a request; returns an error if the connection has ended.
    pub(crate) fn open(
        &self,
        id: RequestId,
    ) -> Result<oneshot::Receiver<PendingResult>, TransportError> {
        let mut state = lock(&self.0);
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let (sender, receiver) = oneshot::channel();
        state.open.insert(id, sender);
        Ok(receiver)
    }

    /// Passes a response to its pending request, and every other message to the router.
    pub(crate) fn dispatch(&self, received: InboundMessage, router: &Arc<InboundRouter>) {
        lock(&self.0).received_any = true;
        match received {
            InboundMessage::Response { id, outcome } => {
                let http = None;
                if let Some(Ok(response)) = self.complete(&id, Ok(RawResponse { http, outcome }))
                    && !self.fail_request_of_other_type(&id)
                {
                    router.on_unexpected_response(id, &response.outcome);
                }
            }
            InboundMessage::InvalidResponse {
                id: Some(id),
                error,
            } => {
                let reason = error.message.clone();
                let invalid_response = Err(TransportError::InvalidResponse { reason });
                if self.complete(&id, invalid_response).is_some()
                    && !self.fail_request_of_other_type(&id)
                {
                    router.report_anomaly(Anomaly::InvalidResponse(error));
                }
            }
            other => router.receive(other),
        }
    }

    /// Fails the pending request with the same id as another JSON type; returns `false` if there is none.
    ///
    /// The server has answered, and will not answer again under the right id.
    fn fail_request_of_other_type(&self, answered: &RequestId) -> bool {
        let Some(asked) = answered.of_other_type() else {
            return false;
        };
        let wrong_type = TransportError::WrongIdType {
            asked: asked.clone(),
            answered: answered.clone(),
        };
        self.complete(&asked, Err(wrong_type)).is_none()
    }

    /// Completes a pending request; returns the result if the request is not pending.
    pub(crate) fn complete(&self, id: &RequestId, with: PendingResult) -> Option<PendingResult> {
        let open = lock(&self.0).open.remove(id);
        match open {
            // If the receiver was just dropped, its guard has already notified the server.
            Some(sender) => {
                let _ = sender.send(with);
                None
            }
            None => Some(with),
        }
    }

    /// Removes a request; returns `false` if it was completed before.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        lock(&self.0).open.remove(id).is_some()
    }

    /// Fails all pending and all later requests; the first reason is kept.
    pub(crate) fn end(&self, reason: TransportError) {
        let mut state = lock(&self.0);
        let open = std::mem::take(&mut state.open);
        let reason = state.ended.get_or_insert(reason).clone();
        drop(state);
        for sender in open.into_values() {
            let _ = sender.send(Err(reason.clone()));
        }
    }

    /// Returns the reason why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        lock(&self.0).ended.clone()
    }

    /// Returns whether the server has sent a valid message.
    pub(crate) fn has_received(&self) -> bool {
        lock(&self.0).received_any
    }
}

/// Maximum number of remembered requests; a response to an older one is an anomaly.
const MAX_REMEMBERED_REQUESTS: usize = 256;

/// The requests that were recently cancelled: a late response to one of them is not an anomaly.
#[derive(Debug, Default)]
pub(crate) struct CancelledRequests(Mutex<VecDeque<RequestId>>);

/// Marks a request as cancelled if this is dropped before the response arrives.
#[derive(Debug)]
pub(crate) struct MarkCancelledOnDrop<'g> {
    cancelled_requests: &'g CancelledRequests,
    id: Option<RequestId>,
}

impl CancelledRequests {
    /// Creates a guard for a request.
    pub(crate) fn mark_on_drop(&self, id: RequestId) -> MarkCancelledOnDrop<'_> {
        MarkCancelledOnDrop {
            cancelled_requests: self,
            id: Some(id),
        }
    }

    /// Returns whether a request was cancelled.
    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        lock(&self.0).contains(id)
    }

    /// Removes a request; returns whether it was cancelled. A second response to it is an anomaly.
    pub(crate) fn take(&self, id: &RequestId) -> bool {
        let mut cancelled_requests = lock(&self.0);
        let at = cancelled_requests
            .iter()
            .position(|cancelled| cancelled == id);
        at.and_then(|at| cancelled_requests.remove(at)).is_some()
    }

    fn insert(&self, id: RequestId) {
        let mut cancelled_requests = lock(&self.0);
        if cancelled_requests.len() == MAX_REMEMBERED_REQUESTS {
            cancelled_requests.pop_front();
        }
        cancelled_requests.push_back(id);
    }
}

impl MarkCancelledOnDrop<'_> {
    /// Disarms the guard: the response has arrived, or will not arrive.
    pub(crate) fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for MarkCancelledOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.cancelled_requests.insert(id);
        }
    }
}

/// Counts the messages that are being sent in the background.
///
/// A dropped call cannot wait until its cancellation is sent. Closing the connection waits for it, because a message
/// that is sent after the end of its session is lost.
#[derive(Debug, Default)]
pub(crate) struct PendingSends(watch::Sender<usize>);

/// One message in flight. Dropping it decrements the count, even if the runtime drops the task.
struct PendingSend(watch::Sender<usize>);

impl PendingSends {
    /// Runs `send` in the background. Without a runtime it is dropped: the connection is closed then.
    pub(crate) fn spawn(&self, send: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        self.0.send_modify(|count| *count += 1);
        let pending = PendingSend(self.0.clone());
        runtime.spawn(async move {
            let _pending = pending;
            send.await;
        });
    }

    /// Waits until all messages are sent, but at most for `limit`.
    pub(crate) async fn wait(&self, limit: Duration) {
        let mut count = self.0.subscribe();
        let _ = timeout(limit, count.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for PendingSend {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_last_send_or_at_the_limit() {
        let sends = PendingSends::default();
        let started_at = Instant::now();

        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(started_at.elapsed().as_secs(), 0);

        sends.spawn(sleep(Duration::from_secs(1)));
        sends.spawn(sleep(Duration::from_secs(3)));
        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(started_at.elapsed().as_secs(), 3);

        sends.spawn(pending());
        sends.wait(Duration::from_secs(10)).await;
        assert_eq!(started_at.elapsed().as_secs(), 13);
    }
}
