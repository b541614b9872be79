//! How long to wait before connecting again.

use std::time::Duration;

use super::wire::Events;

/// What is waited where the server says nothing.
const USUAL: Duration = Duration::from_secs(1);

/// The shortest pause: a server that asks for none would have us run in circles.
const SHORTEST: Duration = Duration::from_millis(100);

/// The longest pause, whatever the server asks for.
const LONGEST: Duration = Duration::from_secs(60);

/// The pause that a stream asked for.
#[derive(Debug, Default)]
pub(super) struct Pause(Option<Duration>);

impl Pause {
    /// Remembers what a stream says; one that says nothing changes nothing.
    pub(super) fn note(&mut self, events: &Events) {
        self.0 = events.retry().or(self.0);
    }

    /// Returns how long to wait after some failures in a row: twice as long after each.
    pub(super) fn after(&self, failures: u32) -> Duration {
        let pause = self.0.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
        pause.saturating_mul(1 << failures.min(10)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_what_the_server_says_within_reason() {
        for (said, waited) in [
            (None, 1000),
            (Some(0), 100),
            (Some(99), 100),
            (Some(500), 500),
            (Some(60_001), 60_000),
            (Some(u64::MAX), 60_000),
        ] {
            let pause = Pause(said.map(Duration::from_millis));
            assert_eq!(pause.after(0), Duration::from_millis(waited), "{said:?}");
        }
    }

    #[test]
    fn failures_make_it_longer() {
        let pause = Pause(Some(Duration::from_millis(500)));

        let waited =
            [0, 1, 2, 6, 7, 100, u32::MAX].map(|failures| pause.after(failures).as_millis());

        assert_eq!(waited, [500, 1000, 2000, 32_000, 60_000, 60_000, 60_000]);
    }
}
