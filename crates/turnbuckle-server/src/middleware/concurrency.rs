//! Limits concurrent operations.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnbuckle_protocol::RpcError;
use turnbuckle_store::BoxFuture;

use super::{Middleware, Next, Operation, OperationResponse};
use crate::sync::lock;

/// Limits the number of concurrent handlers. Further operations wait in a queue; if it is full, they are rejected.
///
/// Tools, prompts, resources and completion count. Lists and subscriptions do not. Rejected operations get the JSON-RPC
/// error [`ConcurrencyLimit::CODE`] before the handler runs.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_server::{Server, middleware::ConcurrencyLimit};
///
/// let server = Server::new("renderer", "1.0.0")
///     // 64 handlers in all, and no tool more than 4 times.
///     .layer(ConcurrencyLimit::new(64))
///     .layer(ConcurrencyLimit::per_tool(4).queue_length(16).queue_timeout(Duration::from_secs(5)));
/// ```
#[derive(Clone)]
pub struct ConcurrencyLimit {
    max_concurrent: usize,
    queue_length: usize,
    queue_timeout: Option<Duration>,
    limiters: Limiters,
}

#[derive(Clone)]
enum Limiters {
    Server(Arc<Limiter>),
    /// By the name of a registered tool, so the number of entries is bounded.
    Tools(Arc<Mutex<HashMap<Box<str>, Arc<Limiter>>>>),
}

/// A semaphore with a bounded queue.
struct Limiter {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl ConcurrencyLimit {
    /// The error code, in the application range, after HTTP 503 "Service Unavailable".
    pub const CODE: i64 = 503;

    /// Limits the whole server.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub fn new(max_concurrent: usize) -> Self {
        Self::with(
            max_concurrent,
            Limiters::Server(Arc::new(Limiter::new(max_concurrent))),
        )
    }

    /// Limits each tool separately. Other operations are not limited.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub fn per_tool(max_concurrent: usize) -> Self {
        Self::with(max_concurrent, Limiters::Tools(Arc::default()))
    }

    fn with(max_concurrent: usize, limiters: Limiters) -> Self {
        assert!(max_concurrent > 0, "the limit must not be zero");
        Self {
            max_concurrent,
            queue_length: max_concurrent,
            queue_timeout: None,
            limiters,
        }
    }

    /// Sets the length of the queue. As long as the limit by default.
    #[must_use]
    pub fn queue_length(mut self, waiting: usize) -> Self {
        self.queue_length = waiting;
        self
    }

    /// Rejects operations that wait longer than this. Unlimited by default.
    #[must_use]
    pub fn queue_timeout(mut self, queue_timeout: Duration) -> Self {
        self.queue_timeout = Some(queue_timeout);
        self
    }

    fn limiter(&self, operation: &Operation) -> Option<Arc<Limiter>> {
        match &self.limiters {
            Limiters::Server(limiter) => operation.has_handler().then(|| limiter.clone()),
            Limiters::Tools(limiters) => {
                let tool = operation.tool()?;
                // A panic cannot leave the table in an invalid state.
                let mut limiters = lock(limiters);
                if let Some(limiter) = limiters.get(tool) {
                    return Some(limiter.clone());
                }
                let limiter = Arc::new(Limiter::new(self.max_concurrent));
                limiters.insert(tool.into(), limiter.clone());
                Some(limiter)
            }
        }
    }

    async fn acquire(&self, limiter: &Limiter) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = limiter.permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = limiter.enqueue(self.queue_length)?;
        let permit = limiter.permits.clone().acquire_owned();
        match self.queue_timeout {
            Some(queue_timeout) => tokio::time::timeout(queue_timeout, permit).await.ok()?.ok(),
            None => permit.await.ok(),
        }
    }
}

impl Middleware for ConcurrencyLimit {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        let Some(limiter) = self.limiter(&operation) else {
            return next.run();
        };
        Box::pin(async move {
            match self.acquire(&limiter).await {
                Some(_permit) => next.run().await,
                None => busy_error(&operation, self.max_concurrent).into(),
            }
        })
    }
}

impl Limiter {
    fn new(max_concurrent: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max_concurrent.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Enters the queue, unless it is full.
    fn enqueue(&self, max_waiting: usize) -> Option<Waiter<'_>> {
        let waiting = Waiter(&self.waiting);
        // The guard decrements the counter in both cases.
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        (before < max_waiting).then_some(waiting)
    }
}

/// An operation in the queue.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy_error(operation: &Operation, max_concurrent: usize) -> RpcError {
    let what = operation.tool().unwrap_or("the server");
    let message =
        format!("`{what}` is busy with {max_concurrent} concurrent calls; try again later");
    RpcError::new(ConcurrencyLimit::CODE, message).with_data(json!({ "limit": max_concurrent }))
}

impl std::fmt::Debug for ConcurrencyLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("at_once", &self.max_concurrent)
            .field("queue_length", &self.queue_length)
            .field("queue_timeout", &self.queue_timeout)
            .finish_non_exhaustive()
    }
}
