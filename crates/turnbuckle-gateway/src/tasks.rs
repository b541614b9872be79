//! Tasks between clients and servers of all revisions.
//!
//! In 2025-11-25 the client requests that a call becomes a task; since 2026-07-28 the server decides. Where client and
//! server use the same design, tasks of the server are passed on under a sealed id (`tasks/ids.rs`). Where they differ, the
//! gateway runs the call as a task of its own server (`calls/own_task.rs`), and awaits the result or the task of the
//! upstream server (`tasks/await_task.rs`).

pub(crate) mod await_task;
pub(crate) mod ids;
mod list;
mod methods;
mod watch;

use std::time::Duration;

use serde_json::{Map, json};
use turnbuckle_client::ServerInfo;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Params, RawObject},
    types::{ServerCapabilities, TasksCapability, tasks::EXTENSION},
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    convert::ListKind,
    gateway::GatewayState,
    lifecycle::{TaskDesign, task_design},
    raw_json::edit,
    upstream::{
        UpstreamServer,
        tool_index::{ToolTaskSupport, ToolTraits},
    },
};

/// Maximum lifetime of a task that a client requests, and the maximum time that a client can wait for a result.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of a task of the gateway if the client does not request one.
pub(crate) const DEFAULT_LIFETIME: Duration = Duration::from_secs(3600);

/// How a call uses tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskMode {
    /// No task: neither side hears of the other side's tasks.
    Plain,
    /// Client and server use the same design, and tasks of the server are passed on.
    Passed,
    /// The gateway runs the call as a task of its own.
    Own {
        /// The lifetime of the task.
        lifetime: Option<Duration>,
        /// Whether the call is, or may become, a task at the server too.
        at_server: bool,
    },
    /// The call is a task at the server, and the gateway awaits it within the call.
    Awaited,
}

impl TaskMode {
    /// Decides how a call uses tasks.
    pub(crate) fn of_call(
        request: &RelayedRequest,
        params: &Params<'_>,
        server: &ServerInfo,
        traits: Option<&ToolTraits>,
    ) -> Result<Self, RpcError> {
        let client = task_design(request.revision());
        let offered = server_design(server);
        if request.method().starts_with("tasks/") {
            let same = client.is_some() && client == offered;
            return same.then_some(Self::Passed).ok_or_else(unknown_task);
        }
        let support = traits.map_or(ToolTaskSupport::Forbidden, |traits| traits.task_support);
        Ok(match (client, offered) {
            (Some(TaskDesign::ClientRequested), offered) => {
                let Some(requested) = task_parameter(request, params)? else {
                    return Ok(Self::Plain);
                };
                match offered {
                    Some(TaskDesign::ClientRequested) => Self::Passed,
                    offered => Self::Own {
                        lifetime: requested,
                        at_server: offered.is_some(),
                    },
                }
            }
            (Some(TaskDesign::ServerDirected), Some(TaskDesign::ServerDirected)) => {
                if declares_tasks(request) {
                    Self::Passed
                } else {
                    Self::Plain
                }
            }
            (Some(TaskDesign::ServerDirected), Some(TaskDesign::ClientRequested)) => {
                match (declares_tasks(request), support) {
                    (_, ToolTaskSupport::Forbidden) => Self::Plain,
                    (true, _) => Self::Own {
                        lifetime: None,
                        at_server: true,
                    },
                    (false, ToolTaskSupport::Required) => Self::Awaited,
                    (false, ToolTaskSupport::Optional) => Self::Plain,
                }
            }
            _ => Self::Plain,
        })
    }

    /// Returns whether the server may make a task of the call.
    pub(crate) fn uses_tasks_at_server(self) -> bool {
        match self {
            Self::Plain => false,
            Self::Passed | Self::Awaited => true,
            Self::Own { at_server, .. } => at_server,
        }
    }

    /// Returns the value of the parameter `task` for a server with client-requested tasks, if the gateway requests one.
    pub(crate) fn requested_task(self) -> Option<String> {
        match self {
            Self::Own {
                lifetime,
                at_server: true,
            } => {
                let lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
                Some(json!({ "ttl": lifetime.as_millis() }).to_string())
            }
            Self::Awaited => Some("{}".to_owned()),
            _ => None,
        }
    }
}

/// Returns the lifetime that the client requests with the parameter `task`, or `None` without it.
fn task_parameter(
    request: &RelayedRequest,
    params: &Params<'_>,
) -> Result<Option<Option<Duration>>, RpcError> {
    if request.method() != "tools/call" {
        return Ok(None);
    }
    let Some(task) = params.get("task") else {
        return Ok(None);
    };
    let task =
        RawObject::parse(task).map_err(|_| RpcError::invalid_params("`task` must be an object"))?;
    let lifetime = task.get("ttl").and_then(|ttl| ttl.parse().ok());
    Ok(Some(lifetime.map(Duration::from_millis)))
}

/// Returns whether the client declared the tasks extension in this request.
pub(crate) fn declares_tasks(request: &RelayedRequest) -> bool {
    let context = request.context();
    context.client_capabilities().has_extension(EXTENSION)
}

/// Returns the design of the tasks that a server offers for tool calls.
pub(crate) fn server_design(server: &ServerInfo) -> Option<TaskDesign> {
    let capabilities = &server.capabilities;
    let offered = match task_design(server.revision)? {
        TaskDesign::ClientRequested => {
            let requests = capabilities.tasks.as_ref()?.requests.as_ref()?;
            requests.tools.as_ref()?.contains_key("call")
        }
        TaskDesign::ServerDirected => {
            let extensions = capabilities.extensions.as_ref()?;
            extensions.contains_key(EXTENSION)
        }
    };
    offered.then(|| task_design(server.revision)).flatten()
}

/// Returns the error for a task that does not exist, or belongs to another caller.
pub(crate) fn unknown_task() -> RpcError {
    RpcError::invalid_params("unknown task; it may have expired")
}

/// Adds to a tool of a server with server-directed tasks that a legacy client may request a task for its calls.
pub(crate) fn with_task_support(
    kind: ListKind,
    tool: String,
    client: Option<TaskDesign>,
    server: &UpstreamServer,
) -> Result<String, RpcError> {
    let is_directed = || {
        let info = server.info.load();
        let design = info.as_ref().and_then(|info| server_design(info));
        design == Some(TaskDesign::ServerDirected)
    };
    if kind != ListKind::Tools || client != Some(TaskDesign::ClientRequested) || !is_directed() {
        return Ok(tool);
    }
    let execution = json!({ "taskSupport": "optional" }).to_string();
    edit(&tool, &[], &[("execution", execution)])
}

impl GatewayState {
    /// Returns whether a server has tasks, of either design.
    pub(crate) fn has_tasks(&self) -> bool {
        self.servers().iter().any(|server| {
            let info = server.info.load();
            info.as_ref()
                .is_some_and(|info| server_design(info).is_some())
        })
    }

    /// Adds the tasks of both designs to the capabilities.
    pub(crate) fn add_task_capabilities(&self, capabilities: &mut ServerCapabilities) {
        if !self.has_tasks() {
            return;
        }
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(EXTENSION.to_owned(), json!({}));
        let mut tasks = TasksCapability::default();
        tasks.list = Some(Map::new());
        tasks.cancel = Some(Map::new());
        let calls = Map::from_iter([("call".to_owned(), json!({}))]);
        tasks.requests.get_or_insert_default().tools = Some(calls);
        capabilities.tasks = Some(tasks);
    }
}
