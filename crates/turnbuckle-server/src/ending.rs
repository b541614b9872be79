//! The end of something, which others wait for.

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

/// Whether something has come to its end.
#[derive(Default)]
pub(crate) struct Ending {
    is_over: AtomicBool,
    waiting: Notify,
}

impl Ending {
    /// Ends it, and lets everyone know who waits.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.waiting.notify_waiters();
    }

    /// Says whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Resolves when it is over.
    pub(crate) async fn over(&self) {
        let mut waiting = pin!(self.waiting.notified());
        // Before looking, so that an end in between is not missed.
        waiting.as_mut().enable();
        if !self.is_over() {
            waiting.await;
        }
    }
}
