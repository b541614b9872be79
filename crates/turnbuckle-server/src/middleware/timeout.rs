//! An end to operations that take too long.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::time::{Instant, sleep_until};
use turnbuckle_store::BoxFuture;

use super::{Answer, Middleware, Next, Operation};
use crate::server::FOREVER;

/// Ends operations that take too long.
///
/// The handler is dropped where it stands. The model reads in an `isError` result that a tool took too long; all else is the
/// error -32603. Time in which a handler waits for the client counts too. `subscriptions/listen` is meant to stay open and
/// is left alone.
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
    exceptions: Vec<(Test, Duration)>,
    extended_to: Option<Duration>,
}

type Test = Arc<dyn Fn(&Operation) -> bool + Send + Sync>;

impl Timeout {
    /// Gives every operation this long.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit: limit.min(FOREVER),
            exceptions: Vec::new(),
            extended_to: None,
        }
    }

    /// Gives the operations that pass a test another limit. The first test that is passed counts.
    #[must_use]
    pub fn when(
        mut self,
        test: impl Fn(&Operation) -> bool + Send + Sync + 'static,
        limit: Duration,
    ) -> Self {
        self.exceptions.push((Arc::new(test), limit.min(FOREVER)));
        self
    }

    /// Lets the time begin anew whenever a handler reports progress, whether or not the client wants to hear of it.
    ///
    /// No operation takes longer than `in_all`, or than its own limit where that is more.
    #[must_use]
    pub fn extended_by_progress(mut self, in_all: Duration) -> Self {
        self.extended_to = Some(in_all.min(FOREVER));
        self
    }

    fn limit_of(&self, operation: &Operation) -> Duration {
        let exception = self.exceptions.iter().find(|(test, _)| test(operation));
        exception.map_or(self.limit, |(_, limit)| *limit)
    }
}

impl Middleware for Timeout {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        // Those wait for as long as there is something to wait for.
        if ["subscriptions/listen", "tasks/result"].contains(&operation.method()) {
            return next.run();
        }
        Box::pin(async move {
            let limit = self.limit_of(&operation);
            match race(&operation, next, limit, self.extended_to).await {
                Some(answer) => answer,
                None => late(&operation, limit),
            }
        })
    }
}

/// Runs what comes next, unless its time is over first.
async fn race(
    operation: &Operation,
    next: Next,
    limit: Duration,
    extended_to: Option<Duration>,
) -> Option<Answer> {
    let call = operation.call();
    let begun = Instant::now();
    let end = begun + extended_to.unwrap_or(limit).max(limit);
    let mut seen = call.steps();
    let mut run = next.run();
    let mut timer = pin!(sleep_until(begun + limit));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = run.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        loop {
            // Progress is usually made while we poll, so this is its time.
            let steps = call.steps();
            if extended_to.is_some() && steps != seen {
                seen = steps;
                timer.as_mut().reset((Instant::now() + limit).min(end));
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if extended_to.is_none() || call.steps() == seen || Instant::now() >= end {
                return Poll::Ready(None);
            }
        }
    })
    .await
}

fn late(operation: &Operation, limit: Duration) -> Answer {
    let method = operation.method();
    tracing::warn!(
        method,
        target = operation.offered(),
        ?limit,
        "took too long"
    );
    let what = operation.tool().unwrap_or(method);
    operation.fail(format!(
        "`{what}` took too long and was stopped; its limit is {limit:?}"
    ))
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
