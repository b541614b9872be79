//! Async primitives that the transports share.

mod gated_future;
mod inline_queue;
mod wake_flag;

use std::{
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

pub(crate) use gated_future::GatedFuture;
pub(crate) use inline_queue::InlineQueue;
use tokio::sync::Notify;
pub(crate) use wake_flag::WakeFlag;

/// Locks a mutex, ignoring poisoning.
///
/// Only for values that stay consistent when a holder of the lock panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A one-time shutdown signal.
#[derive(Default)]
pub(crate) struct ShutdownSignal {
    is_triggered: AtomicBool,
    waiters: Notify,
}

impl ShutdownSignal {
    /// Triggers the signal and wakes all waiters.
    pub(crate) fn trigger(&self) {
        self.is_triggered.store(true, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }

    /// Returns whether the signal was triggered.
    pub(crate) fn is_triggered(&self) -> bool {
        self.is_triggered.load(Ordering::SeqCst)
    }

    /// Resolves when the signal is triggered.
    pub(crate) async fn triggered(&self) {
        let mut notified = pin!(self.waiters.notified());
        // Enabled before the check, so that a trigger in between is not missed.
        notified.as_mut().enable();
        if !self.is_triggered() {
            notified.await;
        }
    }
}
