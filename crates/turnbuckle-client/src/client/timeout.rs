//! The timeouts of calls.

use std::{sync::Mutex, time::Duration};

use tokio::time::{Instant, sleep_until};
use turnbuckle_protocol::timeouts::Timeouts;

use crate::{
    inbound::{InboundRouter, progress::ProgressGuard},
    sync::lock,
    transport::OutgoingRequest,
};

/// Waits until a timeout expires; returns the timeout.
pub(super) fn timed_out<'c>(
    timeouts: &'c Timeouts,
    router: &'c InboundRouter,
    request: &'c OutgoingRequest<'_>,
) -> impl Future<Output = Duration> + 'c {
    let call = Deadline {
        timeouts,
        router,
        request,
    };
    async move {
        while let Some((end, limit)) = call.end() {
            sleep_until(end).await;
            // Progress or authorization may have moved the deadline.
            if call.end().is_some_and(|(now, _)| now <= end) {
                return limit;
            }
        }
        std::future::pending().await
    }
}

/// The deadline of a call.
struct Deadline<'c> {
    timeouts: &'c Timeouts,
    router: &'c InboundRouter,
    request: &'c OutgoingRequest<'c>,
}

impl Deadline<'_> {
    /// Returns the current deadline, and the timeout that it comes from.
    fn end(&self) -> Option<(Instant, Duration)> {
        let timeouts = self.timeouts;
        let idle_end = self.last_seen().checked_add(timeouts.idle);
        match (idle_end, self.total_end()) {
            (Some(idle_end), Some(total_end)) if total_end <= idle_end => {
                Some((total_end, timeouts.total))
            }
            (Some(idle_end), _) => Some((idle_end, timeouts.idle)),
            (None, total_end) => total_end.map(|total_end| (total_end, timeouts.total)),
        }
    }

    /// Returns the end of the total timeout. Time spent on authorization does not count.
    fn total_end(&self) -> Option<Instant> {
        let timer = &self.request.timer;
        let auth_wait = total(self.request.auth_wait.as_deref()).saturating_sub(timer.auth_wait);
        let left = self.timeouts.total.saturating_sub(timer.elapsed);
        timer.started_at.checked_add(left.saturating_add(auth_wait))
    }

    /// Returns the time of the last activity of the server.
    ///
    /// A server that waits for the client is not idle: a user may be filling in a form. Neither is a server that has
    /// not received the request yet, because the user is logging in.
    fn last_seen(&self) -> Instant {
        let request = self.request;
        let progress_guard = request.progress_guard.as_ref();
        let progress = progress_guard.map_or(request.timer.started_at, ProgressGuard::last_seen);
        let waited = self.router.last_server_wait();
        let waited = waited.max(request.auth_wait.as_deref().and_then(AuthWait::last));
        waited.map_or(progress, |waited| waited.max(progress))
    }
}

/// Measures the time that a request takes, over all its attempts. Time spent on authorization does not count.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    /// The start of the current attempt.
    started_at: Instant,
    /// The time spent on authorization before that.
    auth_wait: Duration,
    /// The time that earlier attempts took.
    elapsed: Duration,
}

impl RequestTimer {
    pub(crate) fn start(auth_wait: Option<&AuthWait>) -> Self {
        Self {
            started_at: Instant::now(),
            auth_wait: total(auth_wait),
            elapsed: Duration::ZERO,
        }
    }

    /// Ends an attempt. The time until the next one does not count.
    pub(crate) fn pause(&mut self, auth_wait: Option<&AuthWait>) {
        let auth_wait = total(auth_wait).saturating_sub(self.auth_wait);
        self.elapsed += self.started_at.elapsed().saturating_sub(auth_wait);
    }

    /// Starts another attempt.
    pub(crate) fn resume(&mut self, auth_wait: Option<&AuthWait>) {
        self.started_at = Instant::now();
        self.auth_wait = total(auth_wait);
    }
}

fn total(auth_wait: Option<&AuthWait>) -> Duration {
    auth_wait.map(AuthWait::total).unwrap_or_default()
}

/// Records the time that a request has spent on authorization.
///
/// A user may take minutes to log in. That time does not count against the timeouts of the server.
#[derive(Debug, Default)]
pub(crate) struct AuthWait(Mutex<AuthWaitState>);

#[derive(Debug, Default)]
struct AuthWaitState {
    /// The number of concurrent authorizations, and the start of the first.
    waiters: usize,
    since: Option<Instant>,
    /// The time of earlier authorizations, and the end of the last.
    total: Duration,
    until: Option<Instant>,
}

/// Marks a request as waiting for authorization, until it is dropped.
#[must_use]
pub(crate) struct AuthWaitGuard<'h>(&'h AuthWait);

/// The time limit elapsed.
#[derive(Debug)]
pub(crate) struct TimeLimitElapsed;

impl AuthWait {
    /// Starts to wait for authorization.
    pub(crate) fn begin(&self) -> AuthWaitGuard<'_> {
        let mut state = lock(&self.0);
        state.waiters += 1;
        state.since.get_or_insert_with(Instant::now);
        AuthWaitGuard(self)
    }

    /// Returns the total time spent on authorization until now.
    pub(crate) fn total(&self) -> Duration {
        let state = lock(&self.0);
        let current = state.since.map(|since| since.elapsed());
        state.total + current.unwrap_or_default()
    }

    /// Returns the end of the last authorization: now, if one is in progress.
    pub(crate) fn last(&self) -> Option<Instant> {
        let state = lock(&self.0);
        match state.since {
            Some(_) => Some(Instant::now()),
            None => state.until,
        }
    }
}

impl Drop for AuthWaitGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.waiters -= 1;
        if state.waiters > 0 {
            return;
        }
        if let Some(since) = state.since.take() {
            state.total += since.elapsed();
            state.until = Some(Instant::now());
        }
    }
}

/// Waits for a future, with a time limit; authorization restarts the limit.
pub(crate) async fn within<T>(
    limit: Duration,
    auth_wait: Option<&AuthWait>,
    awaited: impl Future<Output = T>,
) -> Result<T, TimeLimitElapsed> {
    tokio::select! {
        biased;
        output = awaited => Ok(output),
        () = limit_elapsed(limit, auth_wait) => Err(TimeLimitElapsed),
    }
}

/// Waits until the limit has elapsed without authorization.
pub(crate) async fn limit_elapsed(limit: Duration, auth_wait: Option<&AuthWait>) {
    let mut since = Instant::now();
    loop {
        match since.checked_add(limit) {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        match auth_wait.and_then(AuthWait::last) {
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
    async fn authorization_restarts_the_limit() {
        let auth_wait = AuthWait::default();
        let begun = Instant::now();

        let pending = within(10 * SECOND, Some(&auth_wait), async {
            sleep(5 * SECOND).await;
            let guard = auth_wait.begin();
            sleep(300 * SECOND).await;
            drop(guard);
            std::future::pending::<()>().await;
        });

        assert!(pending.await.is_err());
        assert_eq!(begun.elapsed().as_secs(), 315);
        assert_eq!(auth_wait.total().as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_authorizations_count_once() {
        let auth_wait = AuthWait::default();
        let first = auth_wait.begin();
        sleep(SECOND).await;
        let second = auth_wait.begin();
        sleep(SECOND).await;
        drop(first);
        sleep(SECOND).await;
        assert_eq!(auth_wait.last(), Some(Instant::now()));
        drop(second);
        let end = Instant::now();
        sleep(SECOND).await;

        assert_eq!(auth_wait.total().as_secs(), 3);
        assert_eq!(auth_wait.last(), Some(end));
    }

    #[tokio::test(start_paused = true)]
    async fn without_authorization_the_limit_is_fixed() {
        let begun = Instant::now();

        let late = within(SECOND, None, std::future::pending::<()>()).await;
        let ready = within(SECOND, None, std::future::ready(1)).await;

        assert!(late.is_err());
        assert_eq!(ready.ok(), Some(1));
        assert_eq!(begun.elapsed(), SECOND);
    }
}
