//! Durations of operations.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use turnbuckle_store::BoxFuture;

use super::{Middleware, Next, Operation, OperationOutcome, OperationResponse};

/// Reports the duration and outcome of every operation.
///
/// ```
/// use turnbuckle_server::{Server, middleware::Timing};
///
/// let server = Server::new("clock", "1.0.0").layer(Timing::new(|operation, ending, took| {
///     if took.as_millis() > 500 {
///         tracing::warn!(method = operation.method(), %ending, ?took, "slow");
///     }
/// }));
/// ```
#[derive(Clone)]
pub struct Timing {
    callback: OutcomeCallback,
}

type OutcomeCallback = Arc<dyn Fn(&Operation, OperationOutcome, Duration) + Send + Sync>;

impl Timing {
    /// Reports to a function. It must not block: the response waits for it.
    pub fn new(
        callback: impl Fn(&Operation, OperationOutcome, Duration) + Send + Sync + 'static,
    ) -> Self {
        Self {
            callback: Arc::new(callback),
        }
    }

    /// Logs an event at level `DEBUG` for each operation.
    pub fn events() -> Self {
        Self::new(|operation, outcome, elapsed| {
            let (method, target) = (operation.method(), operation.registered_name());
            tracing::debug!(method, target, %outcome, ?elapsed, "operation finished");
        })
    }
}

impl Middleware for Timing {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        Box::pin(async move {
            let started = Instant::now();
            next.observe(|outcome| (self.callback)(&operation, outcome, started.elapsed()))
                .await
        })
    }
}

impl std::fmt::Debug for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timing").finish_non_exhaustive()
    }
}
