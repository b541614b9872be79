//! Whether an upstream server can be reached, and when it may be tried again.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::errors;

/// The first delay after a failure; it doubles with every further one.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Deaths within this time count together.
const DEATH_WINDOW: Duration = Duration::from_secs(60);
/// Deaths after which the server counts as down.
const MAX_DEATHS: usize = 5;

/// The state of an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamState {
    /// Not connected yet.
    Starting,
    /// The last connection succeeded.
    Up,
    /// The last connection failed, or connections end again and again.
    Down,
    /// The server requires a login.
    Login,
    /// The definitions of the server are not those that were approved.
    Locked,
}

impl fmt::Display for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
            Self::Login => "login",
            Self::Locked => "locked",
        })
    }
}

/// The failures of connections that follow each other, and the earliest time of another attempt.
#[derive(Default)]
pub(super) struct Backoff {
    /// Failed attempts since the last success.
    failures: u32,
    last_failure: Option<Instant>,
    /// The ends of established connections in the last minute.
    deaths: VecDeque<Instant>,
    retry_at: Option<Instant>,
    reason: String,
}

impl Backoff {
    /// Returns the delay before the next attempt, or the reason of the last failure if it is too early for one.
    pub(super) fn next_attempt(&self) -> Result<Duration, String> {
        let now = Instant::now();
        match self.retry_at {
            Some(at) if now < at && self.is_exhausted() => Err(self.reason.clone()),
            Some(at) => Ok(at.saturating_duration_since(now)),
            None => Ok(Duration::ZERO),
        }
    }

    /// Records a failed attempt that began at this time. Attempts at the same time count once.
    pub(super) fn failed(&mut self, began: Instant, reason: &str) {
        reason.clone_into(&mut self.reason);
        if self.last_failure.is_some_and(|last| began < last) {
            return;
        }
        let now = Instant::now();
        self.last_failure = Some(now);
        self.retry_at = Some(now + delay(self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    /// Records the end of an established connection. The first one is followed by an attempt at once.
    pub(super) fn died(&mut self, reason: &str) {
        let now = Instant::now();
        while self.deaths.len() > MAX_DEATHS
            || (self.deaths.front()).is_some_and(|first| now - *first > DEATH_WINDOW)
        {
            self.deaths.pop_front();
        }
        let earlier = u32::try_from(self.deaths.len()).unwrap_or(u32::MAX);
        self.deaths.push_back(now);
        reason.clone_into(&mut self.reason);
        self.retry_at = earlier.checked_sub(1).map(|count| now + delay(count));
    }

    pub(super) fn connected(&mut self) {
        self.failures = 0;
        self.last_failure = None;
        self.retry_at = None;
    }

    /// Returns whether an established connection has ended in the last minute or so.
    pub(super) fn has_died(&self) -> bool {
        !self.deaths.is_empty()
    }

    /// Returns whether attempts are rejected instead of delayed.
    pub(super) fn is_exhausted(&self) -> bool {
        self.failures > 0 || self.deaths.len() >= MAX_DEATHS
    }

    fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

fn delay(failures: u32) -> Duration {
    (FIRST_DELAY * 2_u32.saturating_pow(failures.min(10))).min(MAX_DELAY)
}

/// The health of a server, which its connections report.
pub(super) struct UpstreamHealth {
    pub(super) state: UpstreamState,
    pub(super) since: SystemTime,
    /// When the server went down, if it is.
    pub(super) down_at: Option<Instant>,
    pub(super) reason: Option<String>,
    /// The number of open connections.
    open: usize,
    backoff: Backoff,
}

impl UpstreamHealth {
    pub(super) fn new() -> Self {
        Self {
            state: UpstreamState::Starting,
            since: SystemTime::now(),
            down_at: None,
            reason: None,
            open: 0,
            backoff: Backoff::default(),
        }
    }

    /// Returns the reason of the last failure if the server is down, and it is too early for another attempt.
    pub(super) fn retry_later(&self) -> Option<String> {
        let is_down = matches!(self.state, UpstreamState::Down | UpstreamState::Login);
        is_down.then(|| self.backoff.next_attempt().err()).flatten()
    }

    /// Counts the server as up before its first connection.
    pub(super) fn assume_up(&mut self) {
        if self.state == UpstreamState::Starting {
            self.set_state(UpstreamState::Up);
        }
    }

    pub(super) fn connected(&mut self) {
        self.open += 1;
        self.backoff.connected();
        self.reason = None;
        self.set_state(UpstreamState::Up);
    }

    /// A connection has ended. `exhausted` is the backoff of its callers if its ends count as a failure of the server.
    pub(super) fn disconnected(&mut self, exhausted: Option<&Backoff>) {
        self.open = self.open.saturating_sub(1);
        if let Some(backoff) = exhausted.filter(|_| self.open == 0) {
            self.backoff.failures = self.backoff.failures.max(1);
            self.backoff.retry_at = backoff.retry_at();
            self.backoff.reason.clone_from(&backoff.reason);
            self.reason = Some(backoff.reason.clone());
            self.set_state(UpstreamState::Down);
        }
    }

    /// Records a failed attempt. Returns whether the server is down: other connections show that it is not.
    pub(super) fn failed(&mut self, began: Instant, reason: &str) -> bool {
        if self.open > 0 {
            return false;
        }
        self.backoff.failed(began, reason);
        self.reason = Some(reason.to_owned());
        self.set_state(match reason {
            errors::LOGIN_REQUIRED => UpstreamState::Login,
            _ => UpstreamState::Down,
        });
        true
    }

    fn set_state(&mut self, state: UpstreamState) {
        if self.state != state {
            self.state = state;
            self.since = SystemTime::now();
        }
        self.down_at = match state {
            UpstreamState::Starting | UpstreamState::Up => None,
            _ => self.down_at.or_else(|| Some(Instant::now())),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_at_the_same_time_count_once() {
        let mut backoff = Backoff::default();
        let began = Instant::now();
        tokio::time::advance(Duration::from_millis(10)).await;
        for _ in 0..50 {
            backoff.failed(began, "refused");
        }
        assert_eq!(backoff.next_attempt(), Err("refused".to_owned()));
        tokio::time::advance(FIRST_DELAY).await;
        assert_eq!(backoff.next_attempt(), Ok(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_thirty_seconds() {
        let mut backoff = Backoff::default();
        for expected in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            backoff.failed(Instant::now(), "refused");
            tokio::time::advance(Duration::from_millis(expected - 1)).await;
            assert!(backoff.next_attempt().is_err());
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(backoff.next_attempt().is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_deaths_delay_and_the_fifth_rejects() {
        let mut backoff = Backoff::default();
        for expected in [0, 500, 1_000, 2_000] {
            backoff.died("exited 1");
            let delay = backoff.next_attempt().unwrap();
            assert_eq!(delay, Duration::from_millis(expected));
            tokio::time::advance(delay).await;
            backoff.connected();
        }
        backoff.died("exited 1");
        assert_eq!(backoff.next_attempt(), Err("exited 1".to_owned()));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(backoff.next_attempt(), Ok(Duration::ZERO));
        backoff.died("exited 1");
        assert_eq!(backoff.next_attempt(), Ok(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_with_other_connections_is_not_down() {
        let mut health = UpstreamHealth::new();
        health.connected();
        assert!(!health.failed(Instant::now(), "timeout"));
        assert_eq!(health.state, UpstreamState::Up);
        health.disconnected(None);
        assert!(health.failed(Instant::now(), "timeout"));
        assert_eq!(health.state, UpstreamState::Down);
    }
}
