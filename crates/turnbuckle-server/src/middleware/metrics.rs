//! Metrics, named by the OpenTelemetry semantic conventions for MCP.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use metrics::{Label, Unit, describe_gauge, describe_histogram, gauge, histogram};
use tokio::time::Instant;
use turnbuckle_protocol::{jsonrpc::code, method::Method};
use turnbuckle_store::BoxFuture;

use super::{
    Middleware, Next, Operation, OperationOutcome, OperationResponse, SessionKey, SessionStart,
};
use crate::sync::lock;

const OPERATION_DURATION: &str = "mcp.server.operation.duration";
const SESSION_DURATION: &str = "mcp.server.session.duration";
const ACTIVE_OPERATIONS: &str = "mcp.server.active_operations";
const ACTIVE_SESSIONS: &str = "mcp.server.active_sessions";

/// Maximum number of tracked sessions. Further sessions are not counted.
const MAX_TRACKED_SESSIONS: usize = 100_000;

/// Measures operations and sessions, and reports to the recorder of the `metrics` facade.
///
/// - `mcp.server.operation.duration`: a histogram in seconds, by method, tool or prompt, revision, transport, and
///   `error.type` of a failure. A cancelled operation has the `error.type` `cancelled`.
/// - `mcp.server.session.duration`: a histogram in seconds, by revision and transport.
/// - `mcp.server.active_operations`: a gauge by method; that of `subscriptions/listen` is the number of open streams.
/// - `mcp.server.active_sessions`: a gauge by transport.
///
/// Only registered tools and prompts become labels, so clients cannot create new ones. Install a recorder before you
/// create this.
///
/// ```
/// use turnbuckle_server::{Server, middleware::Metrics};
///
/// let server = Server::new("clock", "1.0.0").layer(Metrics::new());
/// ```
#[derive(Clone, Default)]
pub struct Metrics {
    sessions: Arc<Mutex<HashMap<SessionKey, StartedSession>>>,
}

struct StartedSession {
    at: Instant,
    start: SessionStart,
}

impl Metrics {
    /// Creates the layer and describes its metrics to the recorder.
    pub fn new() -> Self {
        describe_histogram!(
            OPERATION_DURATION,
            Unit::Seconds,
            "duration of operations until their response"
        );
        describe_histogram!(SESSION_DURATION, Unit::Seconds, "duration of sessions");
        describe_gauge!(ACTIVE_OPERATIONS, "operations in flight");
        describe_gauge!(ACTIVE_SESSIONS, "open sessions");
        Self::default()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, StartedSession>> {
        // A panic cannot leave the table in an invalid state.
        lock(&self.sessions)
    }
}

impl Middleware for Metrics {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        Box::pin(async move {
            let started = Instant::now();
            let method_label =
                Method::from_name(operation.method()).map_or("_OTHER", |method| method.name);
            let active = gauge!(ACTIVE_OPERATIONS, "mcp.method.name" => method_label);
            active.increment(1.0);
            next.observe(|outcome| {
                active.decrement(1.0);
                histogram!(OPERATION_DURATION, labels(&operation, outcome))
                    .record(started.elapsed().as_secs_f64());
            })
            .await
        })
    }

    fn session_began(&self, session: &SessionStart) {
        let started = StartedSession {
            at: Instant::now(),
            start: *session,
        };
        let mut sessions = self.sessions();
        if sessions.len() < MAX_TRACKED_SESSIONS && sessions.insert(session.key, started).is_none()
        {
            gauge!(ACTIVE_SESSIONS, "network.transport" => session.transport).increment(1.0);
        }
    }

    fn session_ended(&self, session: SessionKey) {
        // Sessions started by another process are not counted here.
        let Some(StartedSession { at, start }) = self.sessions().remove(&session) else {
            return;
        };
        gauge!(ACTIVE_SESSIONS, "network.transport" => start.transport).decrement(1.0);
        let labels = vec![
            Label::from_static_parts("mcp.protocol.version", start.protocol_version),
            Label::from_static_parts("network.transport", start.transport),
        ];
        histogram!(SESSION_DURATION, labels).record(at.elapsed().as_secs_f64());
    }
}

fn labels(operation: &Operation, outcome: OperationOutcome) -> Vec<Label> {
    let mut labels = vec![
        Label::new("mcp.method.name", method(operation, outcome)),
        Label::from_static_parts("mcp.protocol.version", operation.protocol_version()),
        Label::from_static_parts("network.transport", operation.transport()),
    ];
    if let Some(tool) = operation.tool() {
        labels.push(Label::new("gen_ai.tool.name", tool.to_owned()));
        labels.push(Label::from_static_parts(
            "gen_ai.operation.name",
            "execute_tool",
        ));
    } else if let Some(prompt) = operation.registered_name() {
        labels.push(Label::new("gen_ai.prompt.name", prompt.to_owned()));
    }
    if let OperationOutcome::Error { code } = outcome {
        labels.push(Label::new("rpc.response.status_code", code.to_string()));
    }
    if let Some(kind) = outcome.error_type() {
        labels.push(Label::new("error.type", kind.into_owned()));
    }
    labels
}

/// The method name, or `_OTHER` if it is unknown.
fn method(operation: &Operation, outcome: OperationOutcome) -> String {
    let method = operation.method();
    let unknown = OperationOutcome::Error {
        code: code::METHOD_NOT_FOUND,
    };
    if outcome == unknown && Method::from_name(method).is_none() {
        "_OTHER".to_owned()
    } else {
        method.to_owned()
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics")
            .field("sessions", &self.sessions().len())
            .finish()
    }
}
