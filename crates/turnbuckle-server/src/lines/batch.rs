//! Several messages in one array, answered by one array.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use turnbuckle_protocol::RequestId;

use super::sink::Sink;
use crate::together;

/// The answers of one array; sent when the last of its requests is done with.
pub(super) struct Batch {
    sink: Arc<Sink>,
    answers: Mutex<Answers>,
    /// Unfinished arrays keep their answers in memory, so there may not be many.
    _permit: Option<OwnedSemaphorePermit>,
}

struct Answers {
    places: Vec<Option<Bytes>>,
    /// Bytes of all that are there.
    held: usize,
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
            answers: Mutex::new(Answers {
                places: vec![None; length],
                held: 0,
            }),
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
    /// Puts the answer to a request into its place, or says that there is no room for it.
    pub(super) fn answer(self, id: &RequestId, body: Bytes) {
        let is_too_much = together::is_too_much(self.lock().held, body.len());
        self.put(if is_too_much {
            together::too_much(id).body.into_bytes()
        } else {
            body
        });
    }

    /// Puts an error into its place.
    pub(super) fn put(self, body: Bytes) {
        let mut answers = self.lock();
        answers.held += body.len();
        answers.places[self.at] = Some(body);
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        // A panic while the lock is held leaves whole answers behind.
        let answers = self.batch.answers.lock();
        answers.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = self
            .answers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut array = Vec::new();
        for body in answers.places.iter().flatten() {
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
