//! Several messages in one array, answered by one array.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::sink::Sink;

/// The answers of one array; sent when the last of its requests is done with.
pub(super) struct Batch {
    sink: Arc<Sink>,
    answers: Mutex<Vec<Option<Bytes>>>,
    /// Unfinished arrays keep their answers in memory, so there may not be many.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The place of one answer.
pub(super) struct Slot {
    batch: Arc<Batch>,
    at: usize,
}

impl Batch {
    /// Makes room for the answers of an array with `length` entries.
    pub(super) fn new(
        sink: Arc<Sink>,
        length: usize,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sink,
            answers: Mutex::new(vec![None; length]),
            _permit: permit,
        })
    }

    /// The place for the answer to entry `at`.
    pub(super) fn slot(self: &Arc<Self>, at: usize) -> Slot {
        Slot {
            batch: self.clone(),
            at,
        }
    }
}

impl Slot {
    /// Puts the answer into its place.
    pub(super) fn answer(self, body: Bytes) {
        let mut answers = self
            .batch
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        answers[self.at] = Some(body);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = self
            .answers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut array = Vec::new();
        for body in answers.iter().flatten() {
            array.push(if array.is_empty() { b'[' } else { b',' });
            array.extend_from_slice(body);
        }
        // Only notifications, answers and cancelled requests: there is nothing to say.
        if !array.is_empty() {
            array.push(b']');
            self.sink.push(&array);
        }
    }
}
