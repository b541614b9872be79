//! What handlers did to the world.

use std::sync::{Arc, Mutex, PoisonError};

/// What a handler does to the world, noted by itself so that runs can be compared.
///
/// ```
/// use turnbuckle_server::testing::Effects;
///
/// let effects = Effects::default();
/// effects.note("sent the letter");
/// assert_eq!(effects.seen(), ["sent the letter"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Effects {
    seen: Arc<Mutex<Vec<String>>>,
}

impl Effects {
    /// Notes that something happened.
    pub fn note(&self, what: impl Into<String>) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what.into());
    }

    /// Everything that happened, in order.
    pub fn seen(&self) -> Vec<String> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
