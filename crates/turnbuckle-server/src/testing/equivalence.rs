//! One tool call in every mode that clients can use.

use std::{fmt::Debug, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use turnbuckle_protocol::types::{LogLevel, TaskSupport};

use super::{
    MAX_ROUND_TRIPS, Peer, PeerBuilder, PeerResponse, RecordedMessage, SideEffects,
    all_capabilities,
};
use crate::{Server, Tool};

/// A tool call to run in every mode.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCase {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The client's capabilities.
    pub capabilities: Value,
}

impl ToolCase {
    /// Creates a case with a client that supports all client requests.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            capabilities: all_capabilities(),
        }
    }
}

/// The observed outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallTrace {
    /// The tool's result: content, structured content and `isError`.
    pub result: Value,
    /// The JSON-RPC error, if the call failed.
    pub error: Option<Value>,
    /// Progress and log messages, in order.
    pub notifications: Vec<Value>,
    /// The methods of client requests, in order.
    pub client_requests: Vec<String>,
    /// The recorded side effects.
    pub effects: Vec<String>,
}

/// Runs one tool call in every mode and checks that all outcomes are equal:
///
/// - in a session, with client requests while the call waits;
/// - stateless, with retries that reach another instance of the server each time;
/// - as a task of 2025-11-25, with client requests while the client waits for the result;
/// - as a task of the extension, which the client polls and sends input responses to.
///
/// `server` creates an instance that records its side effects; `response` responds to client requests: it takes the
/// method and parameters, and returns the result. Returns the outcome of the call. For tasks, notifications are not
/// compared, because the extension does not deliver them.
///
/// A tool without task settings also runs as a task, because the handler is the same. A tool that
/// [forbids](TaskSupport::Forbidden) tasks does not; one that requires them runs only as a task.
///
/// # Panics
///
/// If two outcomes differ: then the handler does not replay safely, or depends on how it is called.
pub async fn assert_equivalent(
    case: ToolCase,
    server: impl Fn(SideEffects) -> Server,
    response: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> CallTrace {
    let runner = CaseRunner {
        case,
        server,
        response: Arc::new(response),
    };
    match runner.tasks() {
        TaskSupport::Forbidden => runner.as_calls().await,
        TaskSupport::Required => runner.as_tasks().await,
        _ => {
            let as_calls = runner.as_calls().await;
            let as_tasks = runner.as_tasks().await;
            assert_same_outcome(&as_calls, &as_tasks, ["as a call", "as a task"]);
            as_calls
        }
    }
}

/// Runs a case.
struct CaseRunner<S, A> {
    case: ToolCase,
    server: S,
    response: Arc<A>,
}

impl<S, A> CaseRunner<S, A>
where
    S: Fn(SideEffects) -> Server,
    A: Fn(&str, &Value) -> Value + Send + Sync + 'static,
{
    /// Returns the modes of the tool. Without settings, tasks are allowed.
    fn tasks(&self) -> TaskSupport {
        let server = (self.server)(SideEffects::default());
        let catalog = server.catalog();
        match catalog.tools.find(&self.case.tool) {
            Some(tool) if tool.task == TaskSupport::Required => TaskSupport::Required,
            Some(tool) if !tool.forbids_tasks => TaskSupport::Optional,
            // An unknown tool cannot run as a task.
            Some(_) | None => TaskSupport::Forbidden,
        }
    }

    async fn as_calls(&self) -> CallTrace {
        let effects = SideEffects::default();
        let server = (self.server)(effects.clone());
        let connect = Peer::connect(server).legacy("2025-11-25");
        let waiting = self.by_one_peer(connect, &effects).await;
        let returning = self.with_round_trips().await;
        let modes = ["with direct client requests", "with round trips"];
        assert_same_outcome(&waiting, &returning, modes);
        let notifications = [&waiting.notifications, &returning.notifications];
        assert_same("the notifications", notifications, modes);
        waiting
    }

    async fn as_tasks(&self) -> CallTrace {
        let effects = SideEffects::default();
        let connect = Peer::connect(self.with_task(&effects)).legacy("2025-11-25");
        let waiting = self.by_one_peer(connect.tasks(), &effects).await;
        let effects = SideEffects::default();
        let connect = Peer::connect(self.with_task(&effects)).modern();
        let polling = self.by_one_peer(connect.tasks(), &effects).await;
        let modes = ["as a task of 2025-11-25", "as a task of the extension"];
        assert_same_outcome(&waiting, &polling, modes);
        waiting
    }

    /// Creates an instance with a tool that can run as a task.
    fn with_task(&self, effects: &SideEffects) -> Server {
        let server = (self.server)(effects.clone()).task_poll_interval(Duration::from_millis(10));
        let tool = server.catalog().tools.find(&self.case.tool).cloned();
        match tool {
            Some(tool) if tool.task == TaskSupport::Forbidden => {
                server.tool(Tool::clone(&tool).task(TaskSupport::Optional))
            }
            _ => server,
        }
    }

    /// Runs the call with one client.
    async fn by_one_peer(&self, connect: PeerBuilder, effects: &SideEffects) -> CallTrace {
        let requested = SideEffects::default();
        let (client_requests, response) = (requested.clone(), self.response.clone());
        let mut peer = self
            .initialized(connect)
            .respond_with(move |method, params| {
                client_requests.record(method);
                response(method, params)
            })
            .await;
        let case = &self.case;
        let response = peer.call_tool(&case.tool, case.arguments.clone()).await;
        let mut trace = CallTrace::new(&response, effects);
        trace.client_requests = requested.recorded();
        trace.note(&peer.messages());
        trace
    }

    /// Runs the call with retries, each time to another instance.
    async fn with_round_trips(&self) -> CallTrace {
        let effects = SideEffects::default();
        let (mut client_requests, mut messages) = (Vec::new(), Vec::new());
        let mut params = json!({
            "name": self.case.tool,
            "arguments": self.case.arguments,
            "_meta": { "progressToken": 0 },
        });
        // The instances share a store, as behind a load balancer.
        let store = (self.server)(SideEffects::default()).store_ref().clone();
        for _ in 0..MAX_ROUND_TRIPS {
            let instance = (self.server)(effects.clone())
                .state_keys([b"known to every instance"])
                .store(store.clone());
            let mut peer = self.initialized(Peer::connect(instance)).await;
            let response = peer.request("tools/call", params.clone()).await;
            messages.extend(peer.messages());
            let result = response.result().unwrap_or(&Value::Null);
            if result["resultType"] != "input_required" {
                let mut trace = CallTrace::new(&response, &effects);
                trace.client_requests = client_requests;
                trace.note(&messages);
                return trace;
            }
            let mut responses = Map::new();
            for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                let method = request["method"].as_str().unwrap_or_default();
                client_requests.push(method.to_owned());
                responses.insert(key.clone(), (self.response)(method, &request["params"]));
            }
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
        }
        panic!("the call still requires input after {MAX_ROUND_TRIPS} round trips");
    }

    fn initialized(&self, connect: PeerBuilder) -> PeerBuilder {
        connect
            .capabilities(self.case.capabilities.clone())
            .log_level(LogLevel::Debug)
    }
}

impl CallTrace {
    fn new(response: &PeerResponse, effects: &SideEffects) -> Self {
        let result = response.result().unwrap_or(&Value::Null);
        Self {
            result: json!({
                "content": result["content"],
                "structuredContent": result["structuredContent"],
                "isError": result["isError"],
            }),
            error: response.error().cloned(),
            notifications: vec![],
            client_requests: vec![],
            effects: effects.recorded(),
        }
    }

    /// Collects the notifications of the handler.
    fn note(&mut self, messages: &[RecordedMessage]) {
        let notifications = ["notifications/progress", "notifications/message"];
        for message in messages {
            if message
                .method()
                .is_none_or(|method| !notifications.contains(&method))
            {
                continue;
            }
            let mut params = message.json["params"].clone();
            // Differs between runs.
            if let Some(params) = params.as_object_mut() {
                params.remove("_meta");
                params.remove("progressToken");
            }
            self.notifications.push(params);
        }
    }
}

fn assert_same_outcome(one: &CallTrace, other: &CallTrace, modes: [&str; 2]) {
    assert_same("the results", [&one.result, &other.result], modes);
    assert_same("the errors", [&one.error, &other.error], modes);
    assert_same(
        "the client requests",
        [&one.client_requests, &other.client_requests],
        modes,
    );
    assert_same("the side effects", [&one.effects, &other.effects], modes);
}

fn assert_same<T: PartialEq + Debug>(what: &str, [one, other]: [&T; 2], modes: [&str; 2]) {
    assert!(
        one == other,
        "{what} differ:\n  {}: {one:?}\n  {}: {other:?}",
        modes[0],
        modes[1]
    );
}
