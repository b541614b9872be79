//! How long operations take.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use turnbuckle_store::BoxFuture;

use super::{Answer, Ending, Middleware, Next, Operation};

/// Tells how long every operation took and how it ended.
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
    tell: Tell,
}

type Tell = Arc<dyn Fn(&Operation, Ending, Duration) + Send + Sync>;

impl Timing {
    /// Tells a function, which must not block: it runs on the way of the answer.
    pub fn new(tell: impl Fn(&Operation, Ending, Duration) + Send + Sync + 'static) -> Self {
        Self {
            tell: Arc::new(tell),
        }
    }

    /// Writes an event of level `DEBUG` for each operation.
    pub fn events() -> Self {
        Self::new(|operation, ending, elapsed| {
            let (method, target) = (operation.method(), operation.offered());
            tracing::debug!(method, target, %ending, ?elapsed, "answered");
        })
    }
}

impl Middleware for Timing {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let begun = Instant::now();
            next.observe(|ending| (self.tell)(&operation, ending, begun.elapsed()))
                .await
        })
    }
}

impl std::fmt::Debug for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timing").finish_non_exhaustive()
    }
}
