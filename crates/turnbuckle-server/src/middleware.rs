//! Middleware: what happens around every request that a handler or a list answers.
//!
//! A [`Middleware`] sees an [`Operation`] before anything of its handler runs, and how it ended. It may refuse it, race it,
//! or only watch. [`Server::layer`](crate::Server::layer) adds one; the first added is the outermost. Ready-made ones:
//! [`Timing`], [`Timeout`], [`RateLimit`], [`ConcurrencyLimit`], [`AuditLog`], and with the feature `metrics` also `Metrics`.
//!
//! Tools, prompts, resources, completion, all lists, `server/discover` and `subscriptions/listen` come by here. The
//! handshake of older revisions, pings and the settings of a session do not: no handler answers them. A server without
//! layers pays nothing.
//!
//! ```
//! use turnbuckle_protocol::RpcError;
//! use turnbuckle_server::{Server, Tool, ToolError, middleware::{Answer, Next, Operation}};
//!
//! // Lets only known callers use tools.
//! async fn known_callers(operation: Operation, next: Next) -> Answer {
//!     if operation.method() == "tools/call" && operation.principal().is_none() {
//!         return RpcError::new(403, "say who you are").into();
//!     }
//!     next.run().await
//! }
//!
//! let server = Server::new("clock", "1.0.0")
//!     .layer(known_callers)
//!     .tool(Tool::new("now", async || Ok::<_, ToolError>("half past nine".to_owned())));
//! ```

mod audit;
mod concurrency;
mod innermost;
#[cfg(feature = "metrics")]
mod metrics;
mod operation;
mod rate_limit;
mod session;
mod timeout;
mod timing;

pub use audit::{AuditLog, AuditRecord, AuditSink, JsonLines};
pub use concurrency::ConcurrencyLimit;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use operation::Operation;
pub(crate) use operation::{is_offered, target};
pub use rate_limit::RateLimit;
pub(crate) use session::Told;
pub use session::{SessionKey, SessionStart};
pub use timeout::Timeout;
pub use timing::Timing;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Request, code},
};
use turnbuckle_store::BoxFuture;

use crate::{
    context::Call,
    exchange::{Exchange, Outcome, Run},
    incident,
};
use innermost::Innermost;

/// A layer around every request that a handler or a list answers.
///
/// Around a call that runs as a task it is around the work: the client has its task at once, and what the layer makes of
/// the work is what the task ends with.
///
/// An async function or a closure from [`Operation`] and [`Next`] to [`Answer`] is one. Where a layer keeps something, or has
/// to hold on to `self` while it waits, implement it for a type:
///
/// ```
/// use turnbuckle_server::middleware::{Answer, Middleware, Next, Operation};
/// use turnbuckle_store::BoxFuture;
///
/// struct Polite;
///
/// impl Middleware for Polite {
///     fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
///         Box::pin(async move {
///             tracing::debug!(method = operation.method(), "please");
///             let answer = next.run().await;
///             tracing::debug!(ending = %answer.ending(), "thank you");
///             answer
///         })
///     }
/// }
/// ```
///
/// A client that cancels or leaves drops the future where it stands. A layer that wants to know uses [`Next::observe`]. A
/// panic in a layer is an internal error of the request, as one in a handler is.
pub trait Middleware: Send + Sync + 'static {
    /// Answers an operation, usually by running what comes next.
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer>;

    /// Hears that a session began. Clients of revisions without a handshake have none.
    fn session_began(&self, session: &SessionStart) {
        let _ = session;
    }

    /// Hears that a session ended: by the client, with its connection, or because nobody used it for too long.
    fn session_ended(&self, session: SessionKey) {
        let _ = session;
    }
}

impl<F, Fut> Middleware for F
where
    F: Fn(Operation, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        Box::pin(self(operation, next))
    }
}

/// The rest of the way: the layers further in, and the handler.
#[must_use = "nothing happens until it is run"]
pub struct Next {
    operation: Operation,
    /// How many layers are already behind us.
    passed: usize,
    innermost: Innermost,
}

impl Next {
    /// Runs it. Until then nothing of it has begun; dropping the future stops it where it stands.
    pub fn run(mut self) -> BoxFuture<'static, Answer> {
        let layers = self.operation.call().server.layers();
        match layers.get(self.passed).cloned() {
            Some(layer) => {
                self.passed += 1;
                Box::pin(async move { layer.handle(self.operation.clone(), self).await })
            }
            None => Box::pin(self.innermost),
        }
    }

    /// Runs it and tells how it ended, exactly once, also if the future is dropped before its end.
    pub async fn observe(self, tell: impl FnOnce(Ending) + Send) -> Answer {
        let mut guard = Guard(Some(tell));
        let answer = self.run().await;
        if let Some(tell) = guard.0.take() {
            tell(answer.ending());
        }
        answer
    }
}

/// Tells of the cancellation that dropped it.
struct Guard<F: FnOnce(Ending)>(Option<F>);

impl<F: FnOnce(Ending)> Drop for Guard<F> {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            // A panic on its way up is no cancellation, and ends as an internal error.
            let ending = if std::thread::panicking() {
                Ending::Error {
                    code: code::INTERNAL_ERROR,
                }
            } else {
                Ending::Cancelled
            };
            undisturbed(|| tell(ending));
        }
    }
}

/// Calls a layer where nobody waits for an answer: a panic there is logged, and goes no further.
fn undisturbed(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        incident::panicked(&*panic);
    }
}

/// What an operation is answered with.
#[derive(Debug)]
pub struct Answer {
    pub(crate) outcome: Outcome,
    ending: Ending,
}

impl Answer {
    /// How the operation ended.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The JSON-RPC error, if it is one.
    pub fn error(&self) -> Option<&RpcError> {
        self.outcome.as_ref().err()
    }

    fn new(outcome: Outcome, otherwise: Ending) -> Self {
        let ending = match &outcome {
            Ok(_) => otherwise,
            Err(error) => Ending::Error { code: error.code },
        };
        Self { outcome, ending }
    }
}

impl From<RpcError> for Answer {
    fn from(error: RpcError) -> Self {
        Self::new(Err(error), Ending::Completed)
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With a result.
    Completed,
    /// With a result in which a tool tells the model what went wrong (`isError`).
    ToolError,
    /// With a JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
    },
    /// With questions to the client, which comes back with the answers as a new operation.
    InputRequired,
    /// Without an answer: the client cancelled, or is gone, or an outer layer gave up.
    Cancelled,
}

impl Ending {
    /// Its name in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ToolError => "tool_error",
            Self::Error { .. } => "error",
            Self::InputRequired => "input_required",
            Self::Cancelled => "cancelled",
        }
    }

    /// The kind of failure as OpenTelemetry names it, `error.type`: `tool_error`, the code of an error, or `cancelled`.
    pub fn error_type(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Completed | Self::InputRequired => None,
            Self::ToolError | Self::Cancelled => Some(self.as_str().into()),
            Self::Error { code } => Some(code.to_string().into()),
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error { code } => write!(f, "error {code}"),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// Puts the server's layers around an exchange that has not begun.
pub(crate) fn around(exchange: Exchange, request: &Request<'_>) -> Exchange {
    if exchange.has_layers_inside() {
        return exchange;
    }
    match operation(&exchange.call, request) {
        Some(operation) => exchange.wrapped(|run| layered(operation, run)),
        None => exchange,
    }
}

/// What layers see of a request, where there are any.
pub(crate) fn operation(call: &Arc<Call>, request: &Request<'_>) -> Option<Operation> {
    let has_layers = !call.server.layers().is_empty();
    has_layers.then(|| Operation::new(call.clone(), request))
}

/// Puts the server's layers around something that runs.
pub(crate) fn layered(operation: Operation, run: Run) -> crate::exchange::BoxFuture<Outcome> {
    let call = operation.call().clone();
    let next = Next {
        operation,
        passed: 0,
        innermost: Innermost::new(call.clone(), run),
    };
    let answer = next.run();
    Box::pin(async move {
        let Answer { outcome, ending } = answer.await;
        call.set_tool_error(ending == Ending::ToolError);
        outcome
    })
}

/// A layer as a server keeps it.
pub(crate) type Layer = Arc<dyn Middleware>;

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
