//! The requests that we gave up: what still comes for them is late, and not odd.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use turnbuckle_protocol::RequestId;

/// How many are remembered; whoever takes longer than that many others is odd after all.
const REMEMBERED: usize = 256;

/// The requests that we gave up lately.
#[derive(Debug, Default)]
pub(crate) struct GivenUp(Mutex<VecDeque<RequestId>>);

/// A request that counts as given up when this is dropped before it was answered.
#[derive(Debug)]
pub(crate) struct Unanswered<'g> {
    given_up: &'g GivenUp,
    id: Option<RequestId>,
}

impl GivenUp {
    /// Begins to look after a request.
    pub(crate) fn unless_answered(&self, id: RequestId) -> Unanswered<'_> {
        Unanswered {
            given_up: self,
            id: Some(id),
        }
    }

    /// Says whether a request was given up.
    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.lock().contains(id)
    }

    /// Says whether a request was given up, and forgets it: one answer is late, a second one would be odd.
    pub(crate) fn take(&self, id: &RequestId) -> bool {
        let mut given_up = self.lock();
        let at = given_up.iter().position(|known| known == id);
        at.and_then(|at| given_up.remove(at)).is_some()
    }

    fn note(&self, id: RequestId) {
        let mut given_up = self.lock();
        if given_up.len() == REMEMBERED {
            given_up.pop_front();
        }
        given_up.push_back(id);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unanswered<'_> {
    /// Says that it was answered, or that there will be no answer.
    pub(crate) fn answered(mut self) {
        self.id = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.given_up.note(id);
        }
    }
}
