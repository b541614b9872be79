//! The data directory: one SQLite database per project, and one for the data that an owner shares between projects.

#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
pub(crate) mod collections;
pub(crate) mod data_dir;
pub(crate) mod database;
pub(crate) mod dir_handle;
pub(crate) mod locked_file;
pub(crate) mod pending_delete;
pub(crate) mod work_limit;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic of another holder is ignored: every change under a lock in this crate leaves the data valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
