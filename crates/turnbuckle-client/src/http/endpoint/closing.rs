//! Whether the endpoint was closed, and a way to wait for it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, futures::Notified};

use crate::error::TransportError;

#[derive(Debug, Default)]
pub(super) struct Closing {
    closed: AtomicBool,
    notify: Notify,
}

impl Closing {
    /// Waits for the end. Made before [`check`](Self::check) it misses none.
    pub(super) fn closed(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Fails once the endpoint is closed.
    pub(super) fn check(&self) -> Result<(), TransportError> {
        match self.is_closed() {
            true => Err(TransportError::ClosedByUs),
            false => Ok(()),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }
}
