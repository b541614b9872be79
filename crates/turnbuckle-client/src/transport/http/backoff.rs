//! Delays before reconnecting.

use std::time::Duration;

use crate::transport::http_client::EventReader;

/// Delay if the server does not suggest one.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// Minimum delay, so that a server that suggests none does not cause a busy loop.
const MIN_DELAY: Duration = Duration::from_millis(100);

/// Maximum delay, whatever the server suggests.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The delay that a stream suggested.
#[derive(Debug, Default)]
pub(super) struct Backoff(Option<Duration>);

impl Backoff {
    /// Stores the suggested delay of a stream, if it has one.
    pub(super) fn update(&mut self, events: &EventReader) {
        self.0 = events.retry().or(self.0);
    }

    /// Returns the delay after a number of consecutive failures; it doubles with each.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let delay = self.0.unwrap_or(DEFAULT_DELAY).clamp(MIN_DELAY, MAX_DELAY);
        delay.saturating_mul(1 << failures.min(10)).min(MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_of_the_server_is_bounded() {
        for (said, waited) in [
            (None, 1000),
            (Some(0), 100),
            (Some(99), 100),
            (Some(500), 500),
            (Some(60_001), 60_000),
            (Some(u64::MAX), 60_000),
        ] {
            let backoff = Backoff(said.map(Duration::from_millis));
            assert_eq!(backoff.delay(0), Duration::from_millis(waited), "{said:?}");
        }
    }

    #[test]
    fn failures_increase_the_delay() {
        let backoff = Backoff(Some(Duration::from_millis(500)));

        let waited =
            [0, 1, 2, 6, 7, 100, u32::MAX].map(|failures| backoff.delay(failures).as_millis());

        assert_eq!(waited, [500, 1000, 2000, 32_000, 60_000, 60_000, 60_000]);
    }
}
