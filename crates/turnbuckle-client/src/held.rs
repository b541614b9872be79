//! Time that is not the server's: while somebody gets the credentials that a request needs.
//!
//! People log in, and that takes minutes. Until they have, nobody can say that a server is slow.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// When a request was held up for want of credentials, and for how long.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many hold it up, and since when.
    holders: usize,
    since: Option<Instant>,
    /// How long it was held up before that, and until when.
    total: Duration,
    until: Option<Instant>,
}

/// Holds a request up until it is dropped.
#[must_use]
pub(crate) struct Holding<'h>(&'h Held);

/// What was waited for did not come in time.
#[derive(Debug)]
pub(crate) struct Elapsed;

impl Held {
    /// Begins to hold a request up.
    pub(crate) fn hold(&self) -> Holding<'_> {
        let mut state = self.lock();
        state.holders += 1;
        state.since.get_or_insert_with(Instant::now);
        Holding(self)
    }

    /// Returns how long it was held up altogether, until now.
    pub(crate) fn total(&self) -> Duration {
        let state = self.lock();
        let current = state.since.map(|since| since.elapsed());
        state.total + current.unwrap_or_default()
    }

    /// Returns when it was last held up: now, if it still is.
    pub(crate) fn last(&self) -> Option<Instant> {
        let state = self.lock();
        match state.since {
            Some(_) => Some(Instant::now()),
            None => state.until,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holders -= 1;
        if state.holders > 0 {
            return;
        }
        if let Some(since) = state.since.take() {
            state.total += since.elapsed();
            state.until = Some(Instant::now());
        }
    }
}

/// Waits for something, but not longer than it may take; being held up starts the clock anew.
pub(crate) async fn within<T>(
    limit: Duration,
    held: Option<&Held>,
    awaited: impl Future<Output = T>,
) -> Result<T, Elapsed> {
    tokio::select! {
        biased;
        output = awaited => Ok(output),
        () = expired(limit, held) => Err(Elapsed),
    }
}

/// Waits until so much time has passed without being held up.
pub(crate) async fn expired(limit: Duration, held: Option<&Held>) {
    let mut since = Instant::now();
    loop {
        match since.checked_add(limit) {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        match held.and_then(Held::last) {
            Some(last) if last > since => since = last,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn being_held_up_starts_the_clock_anew() {
        let held = Held::default();
        let begun = Instant::now();

        let waiting = within(10 * SECOND, Some(&held), async {
            sleep(5 * SECOND).await;
            let holding = held.hold();
            sleep(300 * SECOND).await;
            drop(holding);
            std::future::pending::<()>().await;
        });

        assert!(waiting.await.is_err());
        assert_eq!(begun.elapsed().as_secs(), 315);
        assert_eq!(held.total().as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn two_who_hold_up_at_once_count_once() {
        let held = Held::default();
        let first = held.hold();
        sleep(SECOND).await;
        let second = held.hold();
        sleep(SECOND).await;
        drop(first);
        sleep(SECOND).await;
        assert_eq!(held.last(), Some(Instant::now()));
        drop(second);
        let end = Instant::now();
        sleep(SECOND).await;

        assert_eq!(held.total().as_secs(), 3);
        assert_eq!(held.last(), Some(end));
    }

    #[tokio::test(start_paused = true)]
    async fn without_anybody_who_holds_up_it_is_a_plain_limit() {
        let begun = Instant::now();

        let late = within(SECOND, None, std::future::pending::<()>()).await;
        let ready = within(SECOND, None, std::future::ready(1)).await;

        assert!(late.is_err());
        assert_eq!(ready.ok(), Some(1));
        assert_eq!(begun.elapsed(), SECOND);
    }
}
