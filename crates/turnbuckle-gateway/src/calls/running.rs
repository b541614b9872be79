//! A request that runs on an upstream connection, and the client requests that the server sends for it.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use turnbuckle_protocol::{
    Revision, RpcError,
    jsonrpc::{Params, RawObject},
    types::{ClientCapabilities, LogLevel},
};
use turnbuckle_server::{
    middleware::SessionKey,
    relay::{GeneralStream, RelayedRequest},
};

use crate::{
    calls::{
        downstream::Delivery,
        inputs::{InputTable, PendingInput},
        url_elicitation::{self, CompletedElicitations},
    },
    convert,
    lifecycle::is_stateless,
    lock,
    raw_json::{edit, quote},
    tasks::ids::RelatedTask,
};

/// Identifies the caller of a request: its principal, or the session or connection it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    Principal(Arc<str>),
    Session(SessionKey),
}

/// `None` if nothing shows that two requests come from one caller.
pub(crate) type CallerKey = Option<Caller>;

/// A request that runs on an upstream connection.
pub(crate) struct RunningCall {
    pub(crate) caller: CallerKey,
    /// The declared capabilities, once no request of the client waits.
    capabilities: OnceLock<Box<ClientCapabilities>>,
    /// The revision of the client.
    downstream: Revision,
    /// Whether the result can be a request for input.
    is_suspendable: bool,
    /// The name of the server, if the client does not know which server it uses.
    server_name: Option<Arc<str>>,
    /// Whether the request runs as a task of the server.
    pub(crate) is_task: bool,
    delivery: Mutex<Delivery>,
    inputs: InputTable,
    /// The task of the server that the call is about.
    task: OnceLock<RelatedTask>,
    /// The URL elicitations that the server has reported as completed.
    pub(crate) completed: CompletedElicitations,
}

/// A client request on its way to the client.
pub(crate) enum ClientRequest {
    /// A request to the client.
    Sent {
        request: RelayedRequest,
        method: &'static str,
        params: String,
    },
    /// An input request of a suspended call.
    Suspended(PendingInput),
    /// A request to the client of a session that belongs to none of its calls.
    OutsideOfCalls {
        stream: GeneralStream,
        method: &'static str,
        params: String,
        /// Replaces the maximum time without progress.
        timeout: Option<Duration>,
    },
}

impl RunningCall {
    /// `server_name` is the name of the server if there are several.
    pub(crate) fn new(
        request: &RelayedRequest,
        params: &Params<'_>,
        caller: CallerKey,
        server_name: Option<Arc<str>>,
    ) -> Arc<Self> {
        let is_suspendable = matches!(
            request.method(),
            "tools/call" | "prompts/get" | "resources/read"
        );
        Arc::new(Self {
            caller,
            capabilities: OnceLock::new(),
            downstream: request.revision(),
            is_suspendable,
            server_name,
            is_task: params.get("task").is_some(),
            delivery: Mutex::new(Delivery::new(request)),
            inputs: InputTable::default(),
            task: OnceLock::new(),
            completed: CompletedElicitations::default(),
        })
    }

    /// Sets the task of the server that the call is about.
    pub(crate) fn set_task(&self, task: RelatedTask) {
        // Set once per call.
        let _ = self.task.set(task);
    }

    /// Returns whether the call is about a task of the server.
    pub(crate) fn is_about_task(&self, id: &str) -> bool {
        self.task.get().is_some_and(|task| task.upstream == id)
    }

    /// Passes the status of its task on to a client that waits for the result.
    pub(crate) fn task_status(&self, params: &str) {
        let Some(task) = self.task.get().filter(|task| !task.client.is_empty()) else {
            return;
        };
        if let Ok(params) = edit(params, &["_meta"], &[("taskId", quote(&task.client))]) {
            self.notify("notifications/tasks/status", &params);
        }
    }

    /// Returns a message with the task that the client knows.
    fn with_client_task(&self, params: &str) -> Result<String, RpcError> {
        RelatedTask::to_client(self.task.get(), params)
    }

    /// Lets another request of the client wait for the result. It receives the notifications that were kept.
    pub(crate) fn attach(&self, request: &RelayedRequest) {
        lock(&self.delivery).attach(request);
    }

    /// Forgets the request of the client, because it gets a response.
    pub(crate) fn detach(&self) {
        let mut delivery = lock(&self.delivery);
        if let Some(request) = delivery.request() {
            self.capabilities
                .get_or_init(|| Box::new(request.context().client_capabilities().clone()));
        }
        delivery.detach();
    }

    /// Returns whether a request of the client waits for the result.
    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.delivery).request().is_some()
    }

    /// Returns whether the call can return a request for input.
    pub(crate) fn is_suspendable(&self) -> bool {
        self.is_suspendable && self.is_stateless()
    }

    /// The level of log messages that the client accepts.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        lock(&self.delivery).log_level()
    }

    /// Returns whether the client gets client requests in results.
    pub(crate) fn is_stateless(&self) -> bool {
        is_stateless(self.downstream)
    }

    /// The client requests that wait for a retry.
    pub(crate) fn inputs(&self) -> &InputTable {
        &self.inputs
    }

    /// Tests the capabilities that the waiting request of the client declares; without one, those of the first request.
    fn test_declared<T>(&self, test: impl Fn(&ClientCapabilities) -> T) -> T {
        let declared = lock(&self.delivery).test_declared(&test);
        declared.unwrap_or_else(|| match self.capabilities.get() {
            Some(capabilities) => test(capabilities),
            None => test(&ClientCapabilities::new()),
        })
    }

    /// Returns whether the client declared what a client request needs.
    pub(crate) fn has_declared(&self, method: &str, params: &str) -> Result<(), RpcError> {
        self.test_declared(|declared| check_declared(declared, method, params))
    }

    /// Returns whether the client can have the user open a URL.
    pub(crate) fn can_open_urls(&self) -> bool {
        self.test_declared(ClientCapabilities::can_elicit_url)
    }

    /// Starts to pass a client request of the server on to the client. `upstream` is the revision of the server.
    pub(crate) fn start_client_request(
        self: &Arc<Self>,
        method: &'static str,
        params: &str,
        upstream: Revision,
    ) -> Result<ClientRequest, RpcError> {
        self.has_declared(method, params)?;
        let params = self.named_params(method, params)?;
        let params = convert::client_request_params(method, &params, upstream, self.downstream)?;
        let params = self.with_client_task(&params)?;
        let task = lock(&self.delivery).request().cloned();
        if let Some(request) = task.filter(RelayedRequest::is_task) {
            let params = edit(&params, &["elicitationId", "_meta"], &[])?;
            return Ok(ClientRequest::Sent {
                request,
                method,
                params,
            });
        }
        if is_stateless(self.downstream) {
            if !self.is_suspendable {
                return Err(RpcError::internal("this call cannot request input"));
            }
            return PendingInput::add(self, method, &params).map(ClientRequest::Suspended);
        }
        let request = lock(&self.delivery).request().cloned();
        let request =
            request.ok_or_else(|| RpcError::internal("no call of a client is running"))?;
        if let Some(id) = url_elicitation::id_of(&params) {
            request.expect_elicitation_complete(&id);
        }
        Ok(ClientRequest::Sent {
            request,
            method,
            params,
        })
    }

    /// Adds the name of the server to the message of an elicitation, if the client sees several servers as one.
    fn named_params(&self, method: &str, params: &str) -> Result<String, RpcError> {
        match &self.server_name {
            Some(server) if method == "elicitation/create" => with_server_name(params, server),
            _ => Ok(params.to_owned()),
        }
    }

    /// The revision of the client.
    pub(crate) fn downstream(&self) -> Revision {
        self.downstream
    }

    /// Passes progress on to the client, under its own token.
    pub(crate) fn progress(&self, params: &str) {
        if let Ok(params) = self.with_client_task(params) {
            lock(&self.delivery).progress(&params);
        }
    }

    /// Passes a log message on to the client, if it accepts messages of this level.
    pub(crate) fn log(&self, params: &str) {
        if let Ok(params) = self.with_client_task(params) {
            lock(&self.delivery).log(&params);
        }
    }

    /// Passes another notification on to the client.
    pub(crate) fn notify(&self, method: &str, params: &str) {
        if let Ok(params) = self.with_client_task(params) {
            lock(&self.delivery).notify(method, &params);
        }
    }
}

impl ClientRequest {
    /// Waits for the response of the client.
    pub(crate) async fn response(&mut self) -> Result<String, RpcError> {
        match self {
            Self::Sent {
                request,
                method,
                params,
            } => Box::pin(request.request_client(method, params)).await,
            // Not boxed: a suspended call waits for long.
            Self::Suspended(input) => input.response().await,
            Self::OutsideOfCalls {
                stream,
                method,
                params,
                timeout,
            } => Box::pin(stream.request_client(method, params, *timeout)).await,
        }
    }
}

/// Checks that a client declared what a client request needs.
pub(crate) fn check_declared(
    declared: &ClientCapabilities,
    method: &str,
    params: &str,
) -> Result<(), RpcError> {
    let is_declared = match method {
        "roots/list" => declared.roots.is_some(),
        "sampling/createMessage" => declared.sampling.is_some(),
        "elicitation/create" => declared.elicitation.is_some(),
        _ => false,
    };
    if !is_declared {
        return Err(RpcError::method_not_found(method));
    }
    let has_member = |name| RawObject::parse(params).is_ok_and(|params| params.get(name).is_some());
    let is_mode_declared = match method {
        "elicitation/create" if url_elicitation::is_url(params) => declared.can_elicit_url(),
        "elicitation/create" => declared.can_elicit_form(),
        "sampling/createMessage" if has_member("tools") => declared.can_sample_with_tools(),
        _ => true,
    };
    let undeclared = || RpcError::invalid_params("the client did not declare this mode");
    is_mode_declared.then_some(()).ok_or_else(undeclared)
}

/// Puts the name of a server before the message of an elicitation.
pub(crate) fn with_server_name(params: &str, server: &str) -> Result<String, RpcError> {
    let object = RawObject::parse(params)?;
    let message = object.string("message")?.unwrap_or_default();
    let message = quote(&format!("{server}: {message}"));
    edit(params, &[], &[("message", message)])
}

/// Returns the method of a client request as a constant.
pub(crate) fn client_request_method(method: &str) -> Option<&'static str> {
    ["elicitation/create", "sampling/createMessage", "roots/list"]
        .into_iter()
        .find(|known| *known == method)
}

/// Returns the method of a request about a task of the client as a constant.
pub(crate) fn task_request_method(method: &str) -> Option<&'static str> {
    ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"]
        .into_iter()
        .find(|known| *known == method)
}

/// Returns an error result of a tool with this text.
pub(crate) fn tool_error(text: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
        quote(text)
    )
}
