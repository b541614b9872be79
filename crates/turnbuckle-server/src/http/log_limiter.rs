//! Rate limit for log messages that a peer can trigger repeatedly.

use std::{sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::sync::lock;

/// Allows one message per interval and counts the others.
///
/// Use one per kind of message:
///
/// ```ignore
/// if let Some(suppressed) = self.session_rejected.try_pass() {
///     tracing::warn!(%error, suppressed, "session rejected");
/// }
/// ```
#[derive(Debug)]
pub(crate) struct LogLimiter {
    state: Mutex<LogLimiterState>,
}

#[derive(Debug, Default)]
struct LogLimiterState {
    last: Option<Instant>,
    suppressed: u64,
}

/// Minimum time between two messages.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

impl LogLimiter {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(LogLimiterState {
                last: None,
                suppressed: 0,
            }),
        }
    }

    /// Returns the number of suppressed messages if another may be logged now.
    pub(crate) fn try_pass(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        let now = Instant::now();
        if state.last.is_some_and(|last| now - last < MIN_INTERVAL) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

impl Default for LogLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_message_passes_per_interval_with_the_number_suppressed() {
        let limiter = LogLimiter::new();

        let first: Vec<_> = (0..1000).map(|_| limiter.try_pass()).collect();
        tokio::time::advance(MIN_INTERVAL).await;
        let later = [limiter.try_pass(), limiter.try_pass()];
        tokio::time::advance(MIN_INTERVAL).await;
        let last = limiter.try_pass();

        assert_eq!(first[0], Some(0));
        assert!(first[1..].iter().all(Option::is_none));
        assert_eq!(later, [Some(999), None]);
        assert_eq!(last, Some(1));
    }
}
