//! Numbers for dashboards, named by the semantic conventions of OpenTelemetry for MCP.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use metrics::{Label, Unit, describe_gauge, describe_histogram, gauge, histogram};
use tokio::time::Instant;
use turnbuckle_protocol::{jsonrpc::code, method::Method};
use turnbuckle_store::BoxFuture;

use super::{Answer, Ending, Middleware, Next, Operation, SessionKey, SessionStart};

const OPERATION_DURATION: &str = "mcp.server.operation.duration";
const SESSION_DURATION: &str = "mcp.server.session.duration";
const ACTIVE_OPERATIONS: &str = "mcp.server.active_operations";
const ACTIVE_SESSIONS: &str = "mcp.server.active_sessions";

/// Sessions whose beginning is remembered; more than these are not counted.
const MOST_SESSIONS: usize = 100_000;

/// Measures operations and sessions, and hands the numbers to the recorder of the `metrics` facade.
///
/// - `mcp.server.operation.duration`: a histogram in seconds, by method, tool or prompt, revision, transport, and
///   `error.type` where it failed. An operation that was cancelled is one with the `error.type` `cancelled`.
/// - `mcp.server.session.duration`: a histogram in seconds, by revision and transport.
/// - `mcp.server.active_operations`: a gauge by method; that of `subscriptions/listen` is the number of open streams.
/// - `mcp.server.active_sessions`: a gauge by transport.
///
/// Only tools and prompts that the server offers become labels, so that no client can invent some. Install a recorder
/// before you make this.
///
/// ```
/// use turnbuckle_server::{Server, middleware::Metrics};
///
/// let server = Server::new("clock", "1.0.0").layer(Metrics::new());
/// ```
#[derive(Clone, Default)]
pub struct Metrics {
    sessions: Arc<Mutex<HashMap<SessionKey, Begun>>>,
}

struct Begun {
    at: Instant,
    start: SessionStart,
}

impl Metrics {
    /// Measures from now on, and describes what is measured to the recorder.
    pub fn new() -> Self {
        describe_histogram!(
            OPERATION_DURATION,
            Unit::Seconds,
            "how long an operation took until its answer"
        );
        describe_histogram!(SESSION_DURATION, Unit::Seconds, "how long a session lasted");
        describe_gauge!(ACTIVE_OPERATIONS, "operations that are being answered");
        describe_gauge!(ACTIVE_SESSIONS, "sessions that have not ended");
        Self::default()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, Begun>> {
        // A panic while the lock is held leaves a valid table behind.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Middleware for Metrics {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let begun = Instant::now();
            let known = Method::named(operation.method()).map_or("_OTHER", |method| method.name);
            let active = gauge!(ACTIVE_OPERATIONS, "mcp.method.name" => known);
            active.increment(1.0);
            next.observe(|ending| {
                active.decrement(1.0);
                histogram!(OPERATION_DURATION, labels(&operation, ending))
                    .record(begun.elapsed().as_secs_f64());
            })
            .await
        })
    }

    fn session_began(&self, session: &SessionStart) {
        let begun = Begun {
            at: Instant::now(),
            start: *session,
        };
        let mut sessions = self.sessions();
        if sessions.len() < MOST_SESSIONS && sessions.insert(session.key, begun).is_none() {
            gauge!(ACTIVE_SESSIONS, "network.transport" => session.transport).increment(1.0);
        }
    }

    fn session_ended(&self, session: SessionKey) {
        // One that another process began is not ours to count.
        let Some(Begun { at, start }) = self.sessions().remove(&session) else {
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

fn labels(operation: &Operation, ending: Ending) -> Vec<Label> {
    let mut labels = vec![
        Label::new("mcp.method.name", method(operation, ending)),
        Label::from_static_parts("mcp.protocol.version", operation.protocol_version()),
        Label::from_static_parts("network.transport", operation.transport()),
    ];
    if let Some(tool) = operation.tool() {
        labels.push(Label::new("gen_ai.tool.name", tool.to_owned()));
        labels.push(Label::from_static_parts(
            "gen_ai.operation.name",
            "execute_tool",
        ));
    } else if let Some(prompt) = operation.offered() {
        labels.push(Label::new("gen_ai.prompt.name", prompt.to_owned()));
    }
    if let Ending::Error { code } = ending {
        labels.push(Label::new("rpc.response.status_code", code.to_string()));
    }
    if let Some(kind) = ending.error_type() {
        labels.push(Label::new("error.type", kind.into_owned()));
    }
    labels
}

/// The method, unless it is one that only the client knows.
fn method(operation: &Operation, ending: Ending) -> String {
    let method = operation.method();
    let unknown = Ending::Error {
        code: code::METHOD_NOT_FOUND,
    };
    if ending == unknown && Method::named(method).is_none() {
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
