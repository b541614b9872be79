//! Batches: several messages in one array, with one array of responses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use turnbuckle_protocol::RequestId;

use super::write_queue::WriteQueue;
use crate::{request::response, sync::lock};

/// The responses of one batch, sent when its last request is done.
pub(super) struct BatchResponse {
    queue: Arc<WriteQueue>,
    entries: Mutex<BatchEntries>,
    /// Open batches buffer their responses, so their number is limited.
    _permit: Option<OwnedSemaphorePermit>,
}

struct BatchEntries {
    bodies: Vec<Option<Bytes>>,
    /// Total bytes of the buffered responses.
    total_bytes: usize,
}

/// The slot of one response.
pub(super) struct BatchSlot {
    batch: Arc<BatchResponse>,
    at: usize,
}

impl BatchResponse {
    /// Creates slots for a batch of `length` messages.
    pub(super) fn new(
        queue: Arc<WriteQueue>,
        length: usize,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Arc<Self> {
        Arc::new(Self {
            queue,
            entries: Mutex::new(BatchEntries {
                bodies: vec![None; length],
                total_bytes: 0,
            }),
            _permit: permit,
        })
    }

    /// Returns the slot of message `at`.
    pub(super) fn slot(self: &Arc<Self>, at: usize) -> BatchSlot {
        BatchSlot {
            batch: self.clone(),
            at,
        }
    }
}

impl BatchSlot {
    /// Stores a response, or an error if the batch is too large.
    pub(super) fn respond(self, id: &RequestId, body: Bytes) {
        let exceeds_batch_limit =
            response::exceeds_batch_limit(self.lock().total_bytes, body.len());
        self.put(if exceeds_batch_limit {
            response::batch_limit_error(id).body.into_bytes()
        } else {
            body
        });
    }

    /// Stores an error.
    pub(super) fn put(self, body: Bytes) {
        let mut entries = self.lock();
        entries.total_bytes += body.len();
        entries.bodies[self.at] = Some(body);
    }

    fn lock(&self) -> MutexGuard<'_, BatchEntries> {
        // A panic cannot leave a partial response.
        lock(&self.batch.entries)
    }
}

impl Drop for BatchResponse {
    fn drop(&mut self) {
        let entries = self
            .entries
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut array = Vec::new();
        for body in entries.bodies.iter().flatten() {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(body);
        }
        // A batch without requests gets no response.
        if !array.is_empty() {
            array.push(b']');
            self.queue.push(&array);
        }
    }
}
