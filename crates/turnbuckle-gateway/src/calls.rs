//! Relays one request to one server.

mod caller_login;
pub(crate) mod downstream;
pub(crate) mod inputs;
mod own_task;
mod round_trips;
pub(crate) mod running;
mod state_purpose;
mod suspendable;
pub(crate) mod suspended;
pub(crate) mod trace;
pub(crate) mod url_elicitation;

use std::{borrow::Cow, sync::Arc, time::Duration};

use turnbuckle_client::relay::{RelayRequest, RelayResult, RelayedClient, param_headers};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Params, RawObject, code},
    meta::keys,
    method::Method,
    types::{ClientCapabilities, JsonObject, ResultType, tasks::EXTENSION},
};
use turnbuckle_server::relay::RelayedRequest;

use self::{
    caller_login::{AfterLogin, calls_login_tool},
    own_task::OwnedCall,
    running::{RunningCall, tool_error},
    state_purpose::StatePurpose,
    suspended::{OpenCall, call_again_error},
    url_elicitation::{id_of, required_elicitations},
};
use crate::{
    convert::{self, ListKind},
    errors,
    gateway::GatewayState,
    hops::{GATEWAYS, HOPS, Hops},
    lifecycle::{ClientRequestPath, RevisionPair, TaskDesign, is_stateless, task_design},
    raw_json::ObjectWriter,
    tasks::{
        self, TaskMode,
        await_task::{TaskEvent, UpstreamTask},
        ids::{self, RelatedTask},
    },
    upstream::{
        UpstreamServer,
        connection::Connection,
        forward_headers::forwarded_headers,
        pool::{caller_key, relayed_capabilities},
        relayed_clients::ClientDescription,
        tool_index::ToolTraits,
    },
};

/// Time in which a modern client can retry a call at a modern server.
const STATE_LIFETIME: Duration = Duration::from_secs(3600);

/// Members of the parameters that the gateway handles itself.
const OWN_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Members of `_meta` that belong to one side only.
const OWN_META: [&str; 9] = [
    keys::PROGRESS_TOKEN,
    keys::RELATED_TASK,
    keys::PROTOCOL_VERSION,
    keys::CLIENT_INFO,
    keys::CLIENT_CAPABILITIES,
    keys::LOG_LEVEL,
    keys::SUBSCRIPTION_ID,
    HOPS,
    GATEWAYS,
];

/// The `Mcp-Param-*` headers of a call.
type ParamHeaderList = Vec<(http::HeaderName, http::HeaderValue)>;

/// The parameter that names the target of a request, with the name that the server uses.
#[derive(Clone, Debug)]
pub(crate) struct TargetName {
    pub(crate) member: &'static str,
    /// The name or URI that the server uses.
    pub(crate) original: String,
    /// The value of the parameter for the server, as JSON.
    pub(crate) value: String,
}

impl GatewayState {
    /// Relays a request to a server, and returns the result in the client's revision.
    pub(crate) async fn relay_call(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        target: Option<&TargetName>,
    ) -> Result<String, RpcError> {
        let resumed = Box::pin(self.resume_after_login(server, request, target)).await?;
        let request = match &resumed {
            Some(AfterLogin::Request(resumed)) => resumed,
            Some(AfterLogin::Declined) => return self.login_declined(server, request),
            None => request,
        };
        let result = if calls_login_tool(server, request, target) {
            Box::pin(self.call_login_tool(server, request)).await
        } else {
            self.relay_call_once(server, request, target).await
        };
        match result {
            Err(error) if errors::requires_login(server.name(), &error) => {
                self.request_login(server, request, target)
            }
            result => result,
        }
    }

    async fn relay_call_once(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        target: Option<&TargetName>,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let purpose = StatePurpose::new(server, request, &params, target);
        // Before anything is connected: a suspended call has its connection.
        if let Some(open) = self.resume(request, &params, &purpose)? {
            return self.await_open_call(open, request, &purpose).await;
        }
        let downstream = request.revision();
        let label = self.server_label(server);
        let call = RunningCall::new(request, &params, caller_key(request), label);
        let connection = self.pool.get(server, request, Some(&call)).await?;
        let _opener = connection.opener_guard(&call);
        let pair = RevisionPair {
            downstream,
            upstream: connection.revision(),
        };
        let mut relayed = RelayedCall {
            gateway: self,
            connection: &connection,
            request,
            params: &params,
            target,
            pair,
            purpose: &purpose,
            mode: TaskMode::Plain,
            traits: None,
        };
        relayed.set_task(&call);
        if let TaskMode::Own { lifetime, .. } = relayed.prepare().await? {
            let run = relayed.to_owned_call().run(Arc::clone(&call));
            return request.run_as_task(lifetime, run).await;
        }
        let result = match pair.client_request_path() {
            ClientRequestPath::Requests => relayed.send_directly(&call).await,
            ClientRequestPath::Results => relayed.pass_input_requests(&call).await,
            // A state that is not one of a suspended call never starts another call.
            ClientRequestPath::Suspend if params.get("requestState").is_some() => {
                Err(call_again_error())
            }
            ClientRequestPath::Suspend => {
                let open = relayed.open_call(&call)?;
                return self.await_open_call(open, request, &purpose).await;
            }
            ClientRequestPath::RoundTrips => Box::pin(relayed.round_trips(&call)).await,
        };
        readable_error(request, result)
    }

    /// Takes the suspended call that a request continues, if it does.
    fn resume(
        &self,
        request: &RelayedRequest,
        params: &Params<'_>,
        purpose: &StatePurpose<'_>,
    ) -> Result<Option<OpenCall>, RpcError> {
        if !is_stateless(request.revision()) {
            return Ok(None);
        }
        let Some(state) = params.string("requestState")? else {
            return Ok(None);
        };
        let responses = params.get("inputResponses").unwrap_or("{}");
        self.suspended
            .resume(&state, responses, request, purpose.as_str())
            .transpose()
    }

    /// Returns the name of a server if clients see several servers as one.
    pub(crate) fn server_label(&self, server: &UpstreamServer) -> Option<Arc<str>> {
        let is_only = self.servers().only().is_some();
        (!is_only).then(|| Arc::clone(&server.settings.name))
    }
}

/// A request on its way to a server.
pub(crate) struct RelayedCall<'a> {
    pub(crate) gateway: &'a Arc<GatewayState>,
    pub(crate) connection: &'a Arc<Connection>,
    pub(crate) request: &'a RelayedRequest,
    pub(crate) params: &'a Params<'a>,
    pub(crate) target: Option<&'a TargetName>,
    pub(crate) pair: RevisionPair,
    /// What a sealed state is bound to.
    pub(crate) purpose: &'a StatePurpose<'a>,
    pub(crate) mode: TaskMode,
    /// The traits of the called tool, if they are known.
    pub(crate) traits: Option<Arc<ToolTraits>>,
}

impl RelayedCall<'_> {
    /// Compares the headers of the client with the call, and decides how it uses tasks.
    async fn prepare(&mut self) -> Result<TaskMode, RpcError> {
        let server = self.connection.client.server();
        let needs_traits = self.request.has_param_headers()
            || self.pair.client_request_path() == ClientRequestPath::Suspend
                && tasks::server_design(&server).is_some();
        self.traits = match self.target.filter(|_| needs_traits && self.is_tool_call()) {
            Some(tool) => self.connection.tool_traits(&tool.original).await.ok(),
            None => None,
        };
        if let Some(traits) = &self.traits {
            self.request.check_param_headers(&traits.param_headers)?;
        }
        let traits = self.traits.as_deref();
        self.mode = TaskMode::of_call(self.request, self.params, &server, traits)?;
        // Without a server that has tasks, none is declared to clients. The other modes need a server that has them.
        if matches!(
            self.mode,
            TaskMode::Own {
                at_server: false,
                ..
            }
        ) && !self.gateway.has_tasks()
        {
            self.mode = TaskMode::Plain;
        }
        Ok(self.mode)
    }

    fn is_tool_call(&self) -> bool {
        self.request.method() == "tools/call"
    }

    fn to_owned_call(&self) -> OwnedCall {
        OwnedCall {
            gateway: Arc::clone(self.gateway),
            connection: Arc::clone(self.connection),
            request: self.request.clone(),
            target: self.target.cloned(),
            pair: self.pair,
            mode: self.mode,
        }
    }

    /// Both sides send client requests as requests.
    async fn send_directly(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let result = self.send_and_finish(call).await;
        if let Err(error) = &result {
            let required = required_elicitations(error).unwrap_or_default();
            for id in required.iter().filter_map(|params| id_of(params)) {
                self.connection
                    .expect_elicitation_complete(&id, self.request);
            }
        }
        result
    }

    /// Names the task that the call waits for.
    fn set_task(&self, call: &RunningCall) {
        // Only this method waits for the task, and a response to `tasks/get` should not be a stream.
        let waits = self.request.method() == "tasks/result";
        let task = self
            .target
            .filter(|target| waits && target.member == "taskId");
        if let (Some(task), Ok(Some(id))) = (task, self.params.string("taskId")) {
            call.set_task(RelatedTask {
                upstream: task.original.clone(),
                client: id.into_owned(),
            });
        }
    }

    /// Sends the request, and returns its result for the client. The result of a task that the gateway requested is
    /// awaited.
    async fn send_and_finish(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let result = self.send(call, &[]).await?;
        if self.requested_task().is_some()
            && let Some(result) = self.await_requested(call, result.json()).await?
        {
            return self.convert(&result);
        }
        self.finish(result.json())
    }

    /// Sends the request. An error is the one for the client.
    async fn send(
        &self,
        call: &Arc<RunningCall>,
        added: &[(&str, String)],
    ) -> Result<RelayResult, RpcError> {
        let mut outgoing = self.outgoing(added)?;
        outgoing.param_headers = self.param_headers(self.traits.as_ref()).await?;
        let mut result = self.connection.relay(call, &outgoing).await;
        if let Err(turnbuckle_client::CallError::Rejected { source, .. }) = &result
            && source.code == code::HEADER_MISMATCH
            && self.is_tool_call()
            && self.connection.client.sends_param_headers()
        {
            // The server did not process the call, because its tools have changed.
            self.connection.lists().invalidate(ListKind::Tools);
            let headers = self.param_headers(None).await?;
            if headers != outgoing.param_headers {
                outgoing.param_headers = headers;
                result = self.connection.relay(call, &outgoing).await;
            }
        }
        result.map_err(|error| {
            let error = errors::call_failure(self.connection.server.name(), error);
            if is_readable(self.request, &error) {
                return error;
            }
            convert::error(self.request.method(), error, self.pair)
        })
    }

    /// Returns the headers that repeat arguments, if the server expects them. Unknown traits of the tool are looked up.
    async fn param_headers(
        &self,
        traits: Option<&Arc<ToolTraits>>,
    ) -> Result<ParamHeaderList, RpcError> {
        let is_expected = self.is_tool_call() && self.connection.client.sends_param_headers();
        let Some(tool) = self.target.filter(|_| is_expected) else {
            return Ok(Vec::new());
        };
        let traits = match traits {
            Some(traits) => Arc::clone(traits),
            None => self.connection.tool_traits(&tool.original).await?,
        };
        if traits.param_headers.is_empty() {
            return Ok(Vec::new());
        }
        param_headers(
            &traits.param_headers,
            self.params.get("arguments").unwrap_or("{}"),
        )
    }

    /// Returns the parameter `task` of the request, if the gateway requests a task.
    fn requested_task(&self) -> Option<String> {
        let is_requested = task_design(self.pair.upstream) == Some(TaskDesign::ClientRequested);
        self.mode.requested_task().filter(|_| is_requested)
    }

    /// Both sides have `input_required` results: they are passed on, with the state sealed for the caller.
    async fn pass_input_requests(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let mut added = Vec::new();
        if let Some(responses) = self.params.get("inputResponses") {
            added.push(("inputResponses", responses.to_owned()));
        }
        if let Some(sealed) = self.params.string("requestState")? {
            if let Some(task) = self.request.open(&sealed, &self.task_purpose()) {
                let responses = self.params.get("inputResponses").unwrap_or("{}");
                let id = String::from_utf8_lossy(&task).into_owned();
                let mut task = UpstreamTask::new(self, call, id);
                task.update(responses).await?;
                return self.pass_task_input(task).await;
            }
            let state = self.request.open(&sealed, self.purpose.as_str());
            let state = state.and_then(|state| String::from_utf8(state).ok());
            let invalid = || {
                RpcError::invalid_params("`requestState` is not valid for this request; call again")
            };
            added.push(("requestState", state.ok_or_else(invalid)?));
        }
        let result = self.send(call, &added).await?;
        match result.kind() {
            ResultType::InputRequired => self.seal_input_required(result.json()),
            ResultType::Task if self.mode != TaskMode::Passed => {
                let task = UpstreamTask::created(self, call, result.json());
                let task = task.map_err(|error| self.invalid(&error))?;
                self.pass_task_input(task).await
            }
            _ => self.finish(result.json()),
        }
    }

    /// Awaits a task for a modern client that uses none. Input requests of the task become those of the call.
    async fn pass_task_input(&self, mut task: UpstreamTask<'_>) -> Result<String, RpcError> {
        match task.next().await? {
            TaskEvent::Result(result) => self.convert(&result),
            TaskEvent::InputRequests(requests) => {
                let id = task.id().as_bytes();
                let state = self
                    .request
                    .seal(id, &self.task_purpose(), suspended::RETRY_TIMEOUT);
                task.keep();
                Ok(self.input_required(&requests, &state))
            }
        }
    }

    /// What a sealed state with the task of a call is bound to.
    fn task_purpose(&self) -> String {
        format!("task of {}", self.purpose.as_str())
    }

    fn input_required(&self, requests: &str, state: &str) -> String {
        let mut out = ObjectWriter::new();
        out.string("resultType", "input_required");
        out.member("inputRequests", requests);
        out.string("requestState", state);
        out.member("_meta", self.gateway.identity.as_meta());
        out.finish()
    }

    /// Seals the state of an `input_required` result for the caller.
    fn seal_input_required(&self, result: &str) -> Result<String, RpcError> {
        let object = RawObject::parse(result).map_err(|error| self.invalid(&error))?;
        let mut set = Vec::new();
        if let Some(requests) = object.get("inputRequests") {
            let spans = trace::with_child_spans(requests);
            if let Cow::Owned(requests) = spans.map_err(|error| self.invalid(&error))? {
                set.push(("inputRequests", requests));
            }
        }
        if let Some(state) = object.get("requestState") {
            let sealed = self
                .request
                .seal(state.as_bytes(), self.purpose.as_str(), STATE_LIFETIME);
            set.push(("requestState", crate::raw_json::quote(&sealed)));
        }
        let result =
            crate::raw_json::edit(result, &[], &set).map_err(|error| self.invalid(&error))?;
        self.convert(&result)
    }

    /// Returns the request for the server: renamed, without the members of this side, and with `added` ones.
    fn outgoing(&self, added: &[(&str, String)]) -> Result<RelayRequest, RpcError> {
        let (request, target) = (self.request, self.target);
        let mut params = ObjectWriter::with_capacity(request.params().len());
        for (name, value) in self.params.members() {
            let is_own_task =
                name == "task" && self.is_tool_call() && self.mode != TaskMode::Passed;
            if OWN_MEMBERS.contains(&&*name) || is_own_task {
                continue;
            }
            match target.filter(|target| target.member == &*name) {
                Some(target) => params.member(&name, &target.value),
                None => params.copy((name, value)),
            }
        }
        for (name, value) in added {
            params.member(name, value);
        }
        if let Some(task) = self.requested_task() {
            params.member("task", &task);
        }
        let mut outgoing = RelayRequest::new(request.method().to_owned(), params.finish());
        self.complete_request(&mut outgoing)?;
        outgoing.name = target_header(request.method(), target, self.params);
        if request.method() == "tasks/result" {
            // Waits as long as the task runs.
            outgoing.timeouts.idle = tasks::MAX_LIFETIME;
            outgoing.timeouts.total = tasks::MAX_LIFETIME;
        }
        Ok(outgoing)
    }

    /// Adds to a request for the server what does not depend on its method.
    pub(crate) fn complete_request(&self, outgoing: &mut RelayRequest) -> Result<(), RpcError> {
        let request = self.request;
        outgoing.meta = self.meta()?;
        // A legacy server has learned them when the connection was opened.
        if is_stateless(self.pair.upstream) {
            outgoing.client = Some(self.relayed_client());
        }
        outgoing.log_level = request.log_level();
        outgoing.progress = request.progress_token().is_some();
        let settings = &self.connection.server.settings;
        outgoing.headers = forwarded_headers(&settings.forward_headers, request);
        outgoing.timeouts = settings.timeouts;
        Ok(())
    }

    /// Returns the client to introduce to a modern server.
    fn relayed_client(&self) -> RelayedClient {
        let (context, connection) = (self.request.context(), self.connection);
        let description = ClientDescription {
            info: context.client().filter(|_| !connection.is_shared()),
            capabilities: context.client_capabilities(),
            uses_tasks: self.mode.uses_tasks_at_server(),
        };
        connection.relayed_clients.get_or_create(description, || {
            let info = self.gateway.pool.client_info(connection, self.request);
            RelayedClient::new(info, self.capabilities())
        })
    }

    /// Returns the capabilities to declare to a modern server.
    fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = relayed_capabilities(self.request);
        if self.mode.uses_tasks_at_server() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(EXTENSION.to_owned(), JsonObject::new().into());
        }
        capabilities
    }

    /// Returns the members of `_meta` for the server.
    fn meta(&self) -> Result<String, RpcError> {
        let meta = self.params.meta_object()?.unwrap_or_default();
        let hops = Hops::next(&meta, &self.gateway.id)?;
        let mut out = ObjectWriter::with_capacity(128);
        for (name, value) in meta.members() {
            if name == keys::TRACEPARENT
                && let Some(child) = trace::child_of(value)
            {
                out.member(&name, &child);
            } else if !OWN_META.contains(&&*name) {
                out.copy((name, value));
            }
        }
        let related = meta.get(keys::RELATED_TASK).map(RawObject::parse);
        if let Some(Ok(related)) = related
            && let Some(id) = related.string("taskId")?
            && let Some((server, id)) = self.gateway.find_task(self.request, &id)
            && server.id == self.connection.server.id
        {
            let id = crate::raw_json::quote(&id);
            out.member(keys::RELATED_TASK, &format!(r#"{{"taskId":{id}}}"#));
        }
        out.members(hops.members());
        Ok(out.into_members())
    }

    /// Converts a result for the client. A task gets the id that the client knows.
    fn finish(&self, result: &str) -> Result<String, RpcError> {
        if self.mode != TaskMode::Passed || self.request.method().starts_with("tasks/") {
            return self.convert(result);
        }
        let sealed = self.seal_task(result);
        match sealed.map_err(|error| self.invalid(&error))? {
            Some(sealed) => self.convert(&sealed),
            None => self.convert(result),
        }
    }

    /// Returns a result that announces a task with the id for the client.
    fn seal_task(&self, result: &str) -> Result<Option<String>, RpcError> {
        let (request, server) = (self.request, &self.connection.server);
        let object = RawObject::parse(result)?;
        if task_design(self.pair.upstream) == Some(TaskDesign::ServerDirected) {
            let is_task = object.string("resultType")?.as_deref() == Some("task");
            return is_task
                .then(|| ids::seal_member(request, server, result))
                .transpose();
        }
        let Some(task) = object.get("task") else {
            return Ok(None);
        };
        let id = RawObject::parse(task)?.string("taskId")?.map(String::from);
        let task = ids::seal_member(request, server, task)?;
        if let (Some(id), Some(client_id)) = (id, RawObject::parse(&task)?.string("taskId")?) {
            self.connection
                .note_task(id, client_id.into_owned(), request);
        }
        let result = crate::raw_json::edit(result, &[], &[("task", task)])?;
        RelatedTask::to_client(None, &result).map(Some)
    }

    fn convert(&self, result: &str) -> Result<String, RpcError> {
        let method = match self.request.method() {
            // Only calls of tools are tasks.
            "tasks/result" => "tools/call",
            method => method,
        };
        let server = &self.connection.server;
        let result = self.gateway.with_shown_uris(server, method, result);
        convert::result(method, &result, self.pair, &self.gateway.identity)
            .map_err(|error| self.invalid(&error))
    }

    fn invalid(&self, error: &RpcError) -> RpcError {
        errors::invalid_result(self.connection.server.name(), error)
    }
}

/// Returns a missing capability of a legacy client as the result of a tool, which a model can read.
fn readable_error(
    request: &RelayedRequest,
    result: Result<String, RpcError>,
) -> Result<String, RpcError> {
    match result {
        Err(error) if is_readable(request, &error) => Ok(tool_error(&error.message)),
        result => result,
    }
}

fn is_readable(request: &RelayedRequest, error: &RpcError) -> bool {
    request.method() == "tools/call"
        && !is_stateless(request.revision())
        && error.code == code::MISSING_CAPABILITY
}

/// Returns the value of the header that repeats the name of the target.
fn target_header(method: &str, target: Option<&TargetName>, params: &Params<'_>) -> Option<String> {
    let member = Method::from_name(method)?.name_member?;
    match target.filter(|target| target.member == member) {
        Some(target) => Some(target.original.clone()),
        None => params.string(member).ok()?.map(String::from),
    }
}
