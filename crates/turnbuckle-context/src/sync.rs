//! Mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic of another holder is ignored: every change under a lock in this crate leaves the data valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
