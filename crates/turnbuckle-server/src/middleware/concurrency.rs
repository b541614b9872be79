//! So many operations at once.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnbuckle_protocol::RpcError;
use turnbuckle_store::BoxFuture;

use super::{Answer, Middleware, Next, Operation};

/// Lets so many handlers run at once; the others wait in line, and those for whom the line is too long are refused.
///
/// Counted are tools, prompts, resources and completion. Lists cost nothing and subscriptions stay open by their nature, so
/// neither waits nor is counted. Refused is by the JSON-RPC error [`ConcurrencyLimit::CODE`], before anything of the handler
/// has run.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_server::{Server, middleware::ConcurrencyLimit};
///
/// let server = Server::new("renderer", "1.0.0")
///     // 64 handlers in all, and no tool more than 4 times.
///     .layer(ConcurrencyLimit::new(64))
///     .layer(ConcurrencyLimit::per_tool(4).line(16).patience(Duration::from_secs(5)));
/// ```
#[derive(Clone)]
pub struct ConcurrencyLimit {
    at_once: usize,
    line: usize,
    patience: Option<Duration>,
    gates: Gates,
}

#[derive(Clone)]
enum Gates {
    Server(Arc<Gate>),
    /// By the name of a tool that the server offers, so there are only so many.
    Tools(Arc<Mutex<HashMap<Box<str>, Arc<Gate>>>>),
}

/// Where operations wait.
struct Gate {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl ConcurrencyLimit {
    /// The code of the error: of the application's own range, after HTTP's "Service Unavailable".
    pub const CODE: i64 = 503;

    /// Limits what runs on the whole server.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub fn new(at_once: usize) -> Self {
        Self::with(at_once, Gates::Server(Arc::new(Gate::new(at_once))))
    }

    /// Limits how often each tool runs; all else passes.
    ///
    /// # Panics
    ///
    /// If it is zero.
    pub fn per_tool(at_once: usize) -> Self {
        Self::with(at_once, Gates::Tools(Arc::default()))
    }

    fn with(at_once: usize, gates: Gates) -> Self {
        assert!(at_once > 0, "something must be able to run");
        Self {
            at_once,
            line: at_once,
            patience: None,
            gates,
        }
    }

    /// Lets so many wait in line. By default as many as may run.
    #[must_use]
    pub fn line(mut self, waiting: usize) -> Self {
        self.line = waiting;
        self
    }

    /// Refuses whoever has waited this long. By default they wait until it is their turn or they leave.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    fn gate(&self, operation: &Operation) -> Option<Arc<Gate>> {
        match &self.gates {
            Gates::Server(gate) => operation.has_handler().then(|| gate.clone()),
            Gates::Tools(gates) => {
                let tool = operation.tool()?;
                // A panic while the lock is held leaves a valid table behind.
                let mut gates = gates.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(gate) = gates.get(tool) {
                    return Some(gate.clone());
                }
                let gate = Arc::new(Gate::new(self.at_once));
                gates.insert(tool.into(), gate.clone());
                Some(gate)
            }
        }
    }

    async fn enter(&self, gate: &Gate) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = gate.places.clone().try_acquire_owned() {
            return Some(place);
        }
        let _waiting = gate.wait(self.line)?;
        let place = gate.places.clone().acquire_owned();
        match self.patience {
            Some(patience) => tokio::time::timeout(patience, place).await.ok()?.ok(),
            None => place.await.ok(),
        }
    }
}

impl Middleware for ConcurrencyLimit {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        let Some(gate) = self.gate(&operation) else {
            return next.run();
        };
        Box::pin(async move {
            match self.enter(&gate).await {
                Some(_place) => next.run().await,
                None => busy(&operation, self.at_once).into(),
            }
        })
    }
}

impl Gate {
    fn new(at_once: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Takes a place in the line, if it is not too long.
    fn wait(&self, longest: usize) -> Option<Waiting<'_>> {
        let waiting = Waiting(&self.waiting);
        // Given back by the guard in either case.
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        (before < longest).then_some(waiting)
    }
}

/// A place in the line.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy(operation: &Operation, at_once: usize) -> RpcError {
    let what = operation.tool().unwrap_or("the server");
    let message = format!("`{what}` is busy with {at_once} calls at once; try again later");
    RpcError::new(ConcurrencyLimit::CODE, message).with_data(json!({ "limit": at_once }))
}

impl std::fmt::Debug for ConcurrencyLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("at_once", &self.at_once)
            .field("line", &self.line)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
