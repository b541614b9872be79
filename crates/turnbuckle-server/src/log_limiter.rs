//! Log messages that a peer can cause again and again.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Lets a message through once in a while, and counts the others.
///
/// One for each kind of message:
///
/// ```ignore
/// if let Some(suppressed) = self.no_session.pass() {
///     tracing::warn!(%error, suppressed, "no new session");
/// }
/// ```
#[derive(Debug)]
pub(crate) struct LogLimiter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

/// The least time between two messages of a kind.
const PERIOD: Duration = Duration::from_secs(10);

impl LogLimiter {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                last: None,
                suppressed: 0,
            }),
        }
    }

    /// Returns how many messages were held back since the last one, if another may be written now.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.last.is_some_and(|last| now - last < PERIOD) {
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
    async fn a_message_passes_once_per_period_and_says_how_many_did_not() {
        let limiter = LogLimiter::new();

        let first: Vec<_> = (0..1000).map(|_| limiter.pass()).collect();
        tokio::time::advance(PERIOD).await;
        let later = [limiter.pass(), limiter.pass()];
        tokio::time::advance(PERIOD).await;
        let last = limiter.pass();

        assert_eq!(first[0], Some(0));
        assert!(first[1..].iter().all(Option::is_none));
        assert_eq!(later, [Some(999), None]);
        assert_eq!(last, Some(1));
    }
}
