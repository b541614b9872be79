//! The measured pace of a server, and the time limits that follow from it.
//!
//! A limit in seconds says nothing about a server on a busy machine: what counts is how long the same server takes for
//! the simplest requests. Limits therefore grow with the slowest start and the slowest light request seen so far.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{RwLock, RwLockWriteGuard};

use crate::options::CheckOptions;

/// The largest limit that a slow server gets, unless the user set a larger one.
const MAX_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time to listen when no message is expected.
const MAX_QUIET_PERIOD: Duration = Duration::from_secs(2);

/// A response may take this many times as long as the slowest light request.
const ANSWER_FACTOR: u32 = 10;

/// A process may take this many times as long as the slowest start.
const START_FACTOR: u32 = 4;

/// A start that takes longer is slow: such processes are not started many at once.
const SLOW_START: Duration = Duration::from_millis(250);

/// The pace of one server and the limits of one check; cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerPace {
    /// The smallest time limit for a response.
    response_timeout: Duration,
    /// The shortest time to listen when no message is expected.
    quiet_period: Duration,
    measured: Arc<Measurements>,
}

#[derive(Default)]
struct Measurements {
    /// The slowest start, in milliseconds and at least 1; 0 if none was measured.
    start: AtomicU64,
    /// The slowest light request, in milliseconds.
    answer: AtomicU64,
    /// The server has ended.
    has_ended: AtomicBool,
    /// Held for writing by a session that repeats a wait while no other session sends.
    pause: RwLock<()>,
}

impl Default for ServerPace {
    fn default() -> Self {
        let options = CheckOptions::default();
        Self {
            response_timeout: options.response_timeout,
            quiet_period: options.quiet_period,
            measured: Arc::default(),
        }
    }
}

impl ServerPace {
    /// Returns the pace of the same server, with the limits of these options as the smallest.
    pub(crate) fn with_limits(&self, options: &CheckOptions) -> Self {
        Self {
            response_timeout: options.response_timeout,
            quiet_period: options.quiet_period,
            measured: Arc::clone(&self.measured),
        }
    }

    /// Records how long a session waited for the first message of its process.
    pub(crate) fn record_start(&self, duration: Duration) {
        let start = &self.measured.start;
        start.fetch_max(millis(duration), Ordering::Relaxed);
    }

    /// Records the time of a light request: a list, a `ping` or the handshake.
    pub(crate) fn record_answer(&self, duration: Duration) {
        let answer = &self.measured.answer;
        answer.fetch_max(millis(duration), Ordering::Relaxed);
    }

    /// Returns the time limit for a response.
    pub(crate) fn response_timeout(&self) -> Duration {
        let ceiling = MAX_RESPONSE_TIMEOUT.max(self.response_timeout);
        (ANSWER_FACTOR * self.slowest_answer()).clamp(self.response_timeout, ceiling)
    }

    /// Returns the time limit for the start and the end of a process.
    pub(crate) fn process_timeout(&self) -> Duration {
        let ceiling = MAX_RESPONSE_TIMEOUT.max(self.response_timeout);
        (START_FACTOR * self.slowest_start().unwrap_or_default())
            .clamp(self.response_timeout(), ceiling)
    }

    /// Returns the time to listen when no message is expected.
    pub(crate) fn quiet_period(&self) -> Duration {
        let ceiling = MAX_QUIET_PERIOD.max(self.quiet_period);
        (2 * self.slowest_answer()).clamp(self.quiet_period, ceiling)
    }

    /// Returns the slowest start so far.
    pub(crate) fn slowest_start(&self) -> Option<Duration> {
        match self.measured.start.load(Ordering::Relaxed) {
            0 => None,
            start => Some(Duration::from_millis(start)),
        }
    }

    /// Returns whether processes take long to start; also while no start was measured.
    pub(crate) fn starts_slowly(&self) -> bool {
        self.slowest_start().is_none_or(|start| start >= SLOW_START)
    }

    /// Records the end of a server that all sessions share; returns whether it is new.
    pub(crate) fn record_end(&self) -> bool {
        !self.measured.has_ended.swap(true, Ordering::Relaxed)
    }

    /// Waits while another session has paused the others.
    pub(crate) async fn wait_while_paused(&self) {
        drop(self.measured.pause.read().await);
    }

    /// Stops other sessions from sending until the guard is dropped.
    pub(crate) async fn pause_other_sessions(&self) -> RwLockWriteGuard<'_, ()> {
        self.measured.pause.write().await
    }

    fn slowest_answer(&self) -> Duration {
        Duration::from_millis(self.measured.answer.load(Ordering::Relaxed))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_secs(5);

    #[test]
    fn limits_grow_with_the_pace_between_floor_and_ceiling() {
        let pace = ServerPace::default();
        assert_eq!(pace.response_timeout(), FLOOR);
        assert_eq!(pace.process_timeout(), FLOOR);

        pace.record_start(Duration::from_secs(4));
        pace.record_answer(Duration::from_millis(900));
        assert_eq!(pace.response_timeout(), Duration::from_secs(9));
        assert_eq!(pace.process_timeout(), Duration::from_secs(16));
        assert_eq!(pace.quiet_period(), Duration::from_millis(1800));

        pace.record_answer(Duration::from_secs(100));
        assert_eq!(pace.response_timeout(), MAX_RESPONSE_TIMEOUT);
        let mut options = CheckOptions::default();
        options.response_timeout = Duration::from_secs(90);
        let patient = pace.with_limits(&options);
        assert_eq!(patient.response_timeout(), Duration::from_secs(90));
    }

    #[test]
    fn slowest_start_decides_whether_processes_start_slowly() {
        let pace = ServerPace::default();
        assert!(pace.starts_slowly(), "unknown");

        pace.record_start(Duration::from_millis(20));
        assert!(!pace.starts_slowly());

        pace.record_start(Duration::from_millis(600));
        pace.record_start(Duration::from_millis(20));
        assert!(pace.starts_slowly());
        assert_eq!(pace.slowest_start(), Some(Duration::from_millis(600)));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_while_a_session_has_paused_the_others() {
        let pace = ServerPace::default();
        let paused = pace.pause_other_sessions().await;
        let waiting = tokio::time::timeout(FLOOR, pace.wait_while_paused()).await;
        assert!(waiting.is_err());

        drop(paused);
        pace.wait_while_paused().await;
    }
}
