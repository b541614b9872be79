//! Timeouts of operations.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::time::{Instant, sleep_until};
use turnbuckle_store::BoxFuture;

use super::{Middleware, Next, Operation, OperationResponse};
use crate::server::MAX_DURATION;

/// Stops operations that take too long.
///
/// The handler is dropped. For a tool the model gets an `isError` result, otherwise the error is -32603. Time spent
/// waiting for the client counts. `subscriptions/listen` is not limited.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_server::{Server, middleware::Timeout};
///
/// let server = Server::new("builder", "1.0.0").layer(
///     Timeout::new(Duration::from_secs(30))
///         .when(|operation| operation.tool() == Some("build"), Duration::from_secs(600))
///         .extended_by_progress(Duration::from_secs(3600)),
/// );
/// ```
#[derive(Clone)]
pub struct Timeout {
    limit: Duration,
    exceptions: Vec<(OperationFilter, Duration)>,
    extended_to: Option<Duration>,
}

type OperationFilter = Arc<dyn Fn(&Operation) -> bool + Send + Sync>;

impl Timeout {
    /// Sets the default timeout.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit: limit.min(MAX_DURATION),
            exceptions: Vec::new(),
            extended_to: None,
        }
    }

    /// Sets another timeout for operations that match `test`. The first match counts.
    #[must_use]
    pub fn when(
        mut self,
        filter: impl Fn(&Operation) -> bool + Send + Sync + 'static,
        limit: Duration,
    ) -> Self {
        self.exceptions
            .push((Arc::new(filter), limit.min(MAX_DURATION)));
        self
    }

    /// Restarts the timeout whenever a handler reports progress, even if the client did not request progress.
    ///
    /// The total time is limited to `in_all`, or to the operation's timeout if that is longer.
    #[must_use]
    pub fn extended_by_progress(mut self, in_all: Duration) -> Self {
        self.extended_to = Some(in_all.min(MAX_DURATION));
        self
    }

    fn limit_of(&self, operation: &Operation) -> Duration {
        let exception = self.exceptions.iter().find(|(test, _)| test(operation));
        exception.map_or(self.limit, |(_, limit)| *limit)
    }
}

impl Middleware for Timeout {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        // These wait for events.
        if ["subscriptions/listen", "tasks/result"].contains(&operation.method()) {
            return next.run();
        }
        Box::pin(async move {
            let limit = self.limit_of(&operation);
            match run_with_limit(&operation, next, limit, self.extended_to).await {
                Some(response) => response,
                None => timed_out(&operation, limit),
            }
        })
    }
}

/// Runs `next` with a timeout.
async fn run_with_limit(
    operation: &Operation,
    next: Next,
    limit: Duration,
    extended_to: Option<Duration>,
) -> Option<OperationResponse> {
    let call = operation.call();
    let started = Instant::now();
    let end = started + extended_to.unwrap_or(limit).max(limit);
    let mut seen_count = call.progress_count();
    let mut run = next.run();
    let mut timer = pin!(sleep_until(started + limit));
    poll_fn(|cx| {
        if let Poll::Ready(response) = run.as_mut().poll(cx) {
            return Poll::Ready(Some(response));
        }
        loop {
            // Progress is usually reported during the poll, so it is checked afterwards.
            let progress_count = call.progress_count();
            if extended_to.is_some() && progress_count != seen_count {
                seen_count = progress_count;
                timer.as_mut().reset((Instant::now() + limit).min(end));
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if extended_to.is_none() || call.progress_count() == seen_count || Instant::now() >= end
            {
                return Poll::Ready(None);
            }
        }
    })
    .await
}

fn timed_out(operation: &Operation, limit: Duration) -> OperationResponse {
    let method = operation.method();
    tracing::warn!(
        method,
        target = operation.registered_name(),
        ?limit,
        "operation timed out"
    );
    let what = operation.tool().unwrap_or(method);
    operation.tool_error(format!("`{what}` timed out after {limit:?}"))
}

impl std::fmt::Debug for Timeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeout")
            .field("limit", &self.limit)
            .field("exceptions", &self.exceptions.len())
            .field("extended_to", &self.extended_to)
            .finish()
    }
}
