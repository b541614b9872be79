//! What time it is.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Tells the time; in tests, whatever time is wanted.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(super) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn time(&self) -> SystemTime {
        (self.0)()
    }

    /// Seconds since 1970, as tokens count.
    pub(super) fn now(&self) -> u64 {
        let since = self.time().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}
