//! What the gateway observes of the requests that it handles: outcome and duration, for audit log and metrics.

use std::sync::{
    Arc, LazyLock, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use memchr::memmem::Finder;
use serde::{Serialize, Serializer};
use tokio::time::Instant;
use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{
    audit::AuditRecord, calls::running::tool_error, convert, errors, gateway::GatewayState,
    lifecycle::RevisionPair, upstream::UpstreamServer,
};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// A result.
    Ok,
    /// The result of a tool that failed, with `isError`.
    ToolError,
    /// The server requests input, and the client continues with another request.
    InputRequired,
    /// An error.
    Error,
    /// The policy hides the item, or the caller lacks a scope.
    Denied,
    /// The definition differs from the tool lock.
    Locked,
    /// The caller made too many calls.
    RateLimited,
    /// The client cancelled the request.
    Cancelled,
}

impl Outcome {
    /// The outcome as words, such as `tool error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool error",
            Self::InputRequired => "input required",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Locked => "locked",
            Self::RateLimited => "rate limited",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What is known of a request while it is handled. It is attached to the request.
pub(crate) struct CallRecord {
    pub(crate) started: Instant,
    server: OnceLock<Arc<UpstreamServer>>,
    target: OnceLock<String>,
    refusal: OnceLock<Outcome>,
    round_trips: AtomicU32,
    /// Whether the client uses a view, and so knows which server it uses.
    pub(crate) is_of_view: bool,
}

impl CallRecord {
    fn new(is_of_view: bool) -> Self {
        Self {
            is_of_view,
            started: Instant::now(),
            server: OnceLock::new(),
            target: OnceLock::new(),
            refusal: OnceLock::new(),
            round_trips: AtomicU32::new(0),
        }
    }

    pub(crate) fn server(&self) -> Option<&Arc<UpstreamServer>> {
        self.server.get()
    }

    pub(crate) fn target(&self) -> Option<&str> {
        self.target.get().map(String::as_str)
    }

    pub(crate) fn round_trips(&self) -> u32 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Sets the server that the request belongs to.
    pub(crate) fn set_server(&self, server: &Arc<UpstreamServer>) {
        let _ = self.server.set(Arc::clone(server));
    }

    /// Sets the name or URI of the request: that of the server, or of the client if no server has it.
    pub(crate) fn set_target(&self, target: &str) {
        let _ = self.target.set(target.to_owned());
    }

    /// Sets the outcome of a request that is refused.
    pub(crate) fn set_refusal(&self, outcome: Outcome) {
        let _ = self.refusal.set(outcome);
    }

    /// Counts an `input_required` result of the server.
    pub(crate) fn count_round_trip(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    fn outcome(&self, method: &str, result: &Result<RelayedResult, RpcError>) -> Outcome {
        if let Some(refusal) = self.refusal.get() {
            return *refusal;
        }
        match result {
            Err(_) => Outcome::Error,
            Ok(result) if method == "tools/call" || method == "prompts/get" => {
                result_outcome(result.tail())
            }
            Ok(_) => Outcome::Ok,
        }
    }
}

/// Returns the outcome of a request with a result.
pub(crate) fn result_outcome(result: &str) -> Outcome {
    static IS_ERROR: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"isError\""));
    static INPUT_REQUIRED: LazyLock<Finder<'_>> =
        LazyLock::new(|| Finder::new("\"input_required\""));
    let contains = |text: &Finder<'_>| text.find(result.as_bytes()).is_some();
    // Most results have neither member, and are not parsed.
    if !contains(&IS_ERROR) && !contains(&INPUT_REQUIRED) {
        return Outcome::Ok;
    }
    let Ok(object) = RawObject::parse(result) else {
        return Outcome::Ok;
    };
    let is_input_required = matches!(
        object.string("resultType").ok().flatten().as_deref(),
        Some("input_required")
    );
    match object.get("isError") {
        _ if is_input_required => Outcome::InputRequired,
        Some("true") => Outcome::ToolError,
        _ => Outcome::Ok,
    }
}

/// Adds to what is known of a request.
pub(crate) fn observe(request: &RelayedRequest, change: impl FnOnce(&CallRecord)) {
    if let Some(record) = request.attached::<CallRecord>() {
        change(record);
    }
}

impl GatewayState {
    /// Handles a request, and records its outcome.
    pub(crate) async fn handle_observed(
        self: &Arc<Self>,
        mut request: RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        let record = Arc::new(CallRecord::new(self.is_view));
        request.attach(Arc::clone(&record));
        let mut observed = ObservedRequest {
            gateway: self,
            request: &request,
            record: &record,
            has_ended: false,
        };
        let result = self.handle(&request).await;
        observed.ended(&result);
        drop(observed);
        match result {
            // A model can read this, and may use another tool.
            Err(error) if self.is_locked_tool(&request, &record) => {
                let pair = RevisionPair::of_own_result(request.revision());
                let result = tool_error(&error.message);
                let result = convert::result(request.method(), &result, pair, &self.identity);
                result.map(RelayedResult::from)
            }
            result => result.map_err(|error| errors::for_client(&request, error)),
        }
    }

    fn is_locked_tool(&self, request: &RelayedRequest, record: &CallRecord) -> bool {
        request.method() == "tools/call" && record.refusal.get() == Some(&Outcome::Locked)
    }
}

/// A request that is handled. If it is dropped before its end, it was cancelled.
struct ObservedRequest<'a> {
    gateway: &'a GatewayState,
    request: &'a RelayedRequest,
    record: &'a CallRecord,
    has_ended: bool,
}

impl ObservedRequest<'_> {
    fn ended(&mut self, result: &Result<RelayedResult, RpcError>) {
        self.has_ended = true;
        let outcome = self.record.outcome(self.request.method(), result);
        if outcome == Outcome::InputRequired {
            self.record.count_round_trip();
        }
        self.publish(outcome, result.as_ref().err());
    }

    fn publish(&self, outcome: Outcome, error: Option<&RpcError>) {
        let (record, request) = (self.record, self.request);
        let server = record.server().map(|server| &server.settings.name);
        let elapsed = record.started.elapsed();
        let operations = &self.gateway.operations.server;
        operations.record(server, request.method(), outcome, error, elapsed);
        if let Some(sink) = &self.gateway.audit {
            sink.0
                .record(&AuditRecord::new(request, record, outcome, error));
        }
    }
}

impl Drop for ObservedRequest<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.publish(Outcome::Cancelled, None);
        }
    }
}
