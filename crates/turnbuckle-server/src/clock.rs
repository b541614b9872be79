//! The time that processes share, for what expires after it has left this one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
