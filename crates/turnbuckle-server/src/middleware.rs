//! Middleware: layers around every request that a handler or a list responds to.
//!
//! A [`Middleware`] sees an [`Operation`] before its handler runs, and its outcome. It may reject it, limit it, or only
//! observe it. [`Server::layer`](crate::Server::layer) adds one; the first added is the outermost. Included:
//! [`Timing`], [`Timeout`], [`RateLimit`], [`ConcurrencyLimit`], [`AuditLog`], and with the feature `metrics` also
//! `Metrics`.
//!
//! Layers see tools, prompts, resources, completion, all lists, `server/discover` and `subscriptions/listen`. They do
//! not see `initialize`, pings and session settings, which do not reach a handler. Without layers they cost nothing.
//!
//! ```
//! use turnbuckle_protocol::RpcError;
//! use turnbuckle_server::{Server, Tool, middleware::{OperationResponse, Next, Operation}};
//!
//! // Lets only known callers use tools.
//! async fn known_callers(operation: Operation, next: Next) -> OperationResponse {
//!     if operation.method() == "tools/call" && operation.principal().is_none() {
//!         return RpcError::new(403, "say who you are").into();
//!     }
//!     next.run().await
//! }
//!
//! let server = Server::new("clock", "1.0.0")
//!     .layer(known_callers)
//!     .tool(Tool::new("now", async || Ok("half past nine".to_owned())));
//! ```

mod audit;
mod concurrency;
mod handler_service;
#[cfg(feature = "metrics")]
mod metrics;
mod operation;
mod rate_limit;
mod session;
mod timeout;
mod timing;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

pub use audit::{AuditLog, AuditRecord, AuditSink, JsonLines};
pub use concurrency::ConcurrencyLimit;
use handler_service::HandlerService;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use operation::Operation;
pub(crate) use operation::{is_registered, target};
pub(crate) use rate_limit::hash_caller;
pub use rate_limit::{RateLimit, RateTable};
pub(crate) use session::SessionEndGuard;
pub use session::{SessionKey, SessionStart};
pub use timeout::Timeout;
pub use timing::Timing;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Request, code},
};
use turnbuckle_store::BoxFuture;

use crate::request::{
    DispatchOutcome, RequestContext, ResponseResult, RunningRequest, error::report_panic,
};

/// A layer around every request that a handler or a list responds to.
///
/// For a call that runs as a task, the layer wraps the work: the client gets the task immediately, and the layer's
/// response is the result of the task.
///
/// Async functions and closures from [`Operation`] and [`Next`] to [`OperationResponse`] implement it. If a layer has
/// state, or borrows `self` across an await, implement it for a type:
///
/// ```
/// use turnbuckle_server::middleware::{OperationResponse, Middleware, Next, Operation};
/// use turnbuckle_store::BoxFuture;
///
/// struct Polite;
///
/// impl Middleware for Polite {
///     fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
///         Box::pin(async move {
///             tracing::debug!(method = operation.method(), "please");
///             let answer = next.run().await;
///             tracing::debug!(ending = %answer.outcome(), "thank you");
///             answer
///         })
///     }
/// }
/// ```
///
/// The future is dropped when the client cancels or disconnects; use [`Next::observe`] to see that. A panic in a layer
/// is an internal error of the request, as in a handler.
pub trait Middleware: Send + Sync + 'static {
    /// Responds to an operation, usually by running `next`.
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse>;

    /// Called when a session starts. Stateless clients do not start sessions.
    fn session_began(&self, session: &SessionStart) {
        let _ = session;
    }

    /// Called when a session ends: deleted by the client, closed with its connection, or expired.
    fn session_ended(&self, session: SessionKey) {
        let _ = session;
    }
}

impl<F, Fut> Middleware for F
where
    F: Fn(Operation, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = OperationResponse> + Send + 'static,
{
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        Box::pin(self(operation, next))
    }
}

/// The inner layers and the handler.
#[must_use = "nothing happens until `run` is called"]
pub struct Next {
    operation: Operation,
    /// The number of layers already entered.
    passed: usize,
    handler_service: HandlerService,
}

impl Next {
    /// Runs the inner layers and the handler. Nothing runs before this call; dropping the future stops it.
    pub fn run(mut self) -> BoxFuture<'static, OperationResponse> {
        let layers = self.operation.call().server.layers();
        match layers.get(self.passed).cloned() {
            Some(layer) => {
                self.passed += 1;
                Box::pin(async move { layer.handle(self.operation.clone(), self).await })
            }
            None => Box::pin(self.handler_service),
        }
    }

    /// Runs the operation and reports its outcome exactly once, even if the future is dropped.
    pub async fn observe(
        self,
        callback: impl FnOnce(OperationOutcome) + Send,
    ) -> OperationResponse {
        let mut guard = ObserveGuard(Some(callback));
        let response = self.run().await;
        if let Some(callback) = guard.0.take() {
            callback(response.outcome());
        }
        response
    }
}

/// Reports a cancellation when dropped early.
struct ObserveGuard<F: FnOnce(OperationOutcome)>(Option<F>);

impl<F: FnOnce(OperationOutcome)> Drop for ObserveGuard<F> {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            // An unwinding panic is an internal error, not a cancellation.
            let outcome = if std::thread::panicking() {
                OperationOutcome::Error {
                    code: code::INTERNAL_ERROR,
                }
            } else {
                OperationOutcome::Cancelled
            };
            catch_panic(|| callback(outcome));
        }
    }
}

/// Calls layer code outside of a request. A panic is logged and goes no further.
fn catch_panic(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        report_panic(&*panic);
    }
}

/// The response to an operation.
#[derive(Debug)]
pub struct OperationResponse {
    pub(crate) result: ResponseResult,
    outcome: OperationOutcome,
}

impl OperationResponse {
    /// The outcome of the operation.
    pub fn outcome(&self) -> OperationOutcome {
        self.outcome
    }

    /// The JSON-RPC error, if it is one.
    pub fn error(&self) -> Option<&RpcError> {
        self.result.as_ref().err()
    }

    fn new(result: ResponseResult, success_outcome: OperationOutcome) -> Self {
        let outcome = match &result {
            Ok(_) => success_outcome,
            Err(error) => OperationOutcome::Error { code: error.code },
        };
        Self { result, outcome }
    }
}

impl From<RpcError> for OperationResponse {
    fn from(error: RpcError) -> Self {
        Self::new(Err(error), OperationOutcome::Completed)
    }
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationOutcome {
    /// A result.
    Completed,
    /// A tool result with `isError`.
    ToolError,
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
    },
    /// Input requests for the client, which retries as a new operation.
    InputRequired,
    /// No response: the client cancelled or disconnected, or an outer layer stopped it.
    Cancelled,
}

impl OperationOutcome {
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

    /// The `error.type` of OpenTelemetry: `tool_error`, the error code, or `cancelled`.
    pub fn error_type(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Completed | Self::InputRequired => None,
            Self::ToolError | Self::Cancelled => Some(self.as_str().into()),
            Self::Error { code } => Some(code.to_string().into()),
        }
    }
}

impl std::fmt::Display for OperationOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error { code } => write!(f, "error {code}"),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// Wraps a request that has not started in the server's layers.
pub(crate) fn wrap(running_request: RunningRequest, request: &Request<'_>) -> RunningRequest {
    if running_request.has_layers_inside() {
        return running_request;
    }
    match operation(&running_request.call, request) {
        Some(operation) => running_request.wrap(|run| wrap_in_layers(operation, run)),
        None => running_request,
    }
}

/// Returns the operation that layers see, if the server has layers.
pub(crate) fn operation(call: &Arc<RequestContext>, request: &Request<'_>) -> Option<Operation> {
    let has_layers = !call.server.layers().is_empty();
    has_layers.then(|| Operation::new(call.clone(), request))
}

/// Wraps a handler in the server's layers.
pub(crate) fn wrap_in_layers(
    operation: Operation,
    run: DispatchOutcome,
) -> crate::request::BoxFuture<ResponseResult> {
    let call = operation.call().clone();
    let next = Next {
        operation,
        passed: 0,
        handler_service: HandlerService::new(call.clone(), run),
    };
    let response = next.run();
    Box::pin(async move {
        let OperationResponse { result, outcome } = response.await;
        call.set_tool_error(outcome == OperationOutcome::ToolError);
        result
    })
}

/// A registered layer.
pub(crate) type Layer = Arc<dyn Middleware>;

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
