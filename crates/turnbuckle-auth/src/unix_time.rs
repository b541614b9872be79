//! Unix time in whole seconds, as tokens have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current Unix time.
pub(crate) fn now() -> u64 {
    seconds(SystemTime::now())
}

/// Returns the Unix time of a time; 0 for one before 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
