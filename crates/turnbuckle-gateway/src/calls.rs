//! Relays one request to one server.

pub(crate) mod delivery;
mod inputs;
mod round_trips;
pub(crate) mod running;
mod state_purpose;
mod suspendable;
pub(crate) mod suspended;
pub(crate) mod url_elicitation;

use std::{sync::Arc, time::Duration};

use turnbuckle_client::{
    CallError,
    relay::{RelayRequest, RelayResult},
};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{RawObject, code},
    meta::keys,
    method::Method,
    types::ResultType,
};
use turnbuckle_server::relay::RelayedRequest;

use self::{
    running::{RunningCall, tool_error},
    state_purpose::StatePurpose,
    suspended::{OpenCall, call_again},
    url_elicitation::{id_of, required_elicitations},
};
use crate::{
    convert, errors,
    gateway::GatewayState,
    lifecycle::{ClientRequestPath, RevisionPair, is_stateless},
    raw_json::ObjectWriter,
    upstream::{
        UpstreamServer,
        connection::Connection,
        forward_headers::forwarded_headers,
        pool::{caller_key, relayed_capabilities},
    },
};

/// Counts the gateways that a request has passed.
const HOPS: &str = "dev.turnbuckle/hops";
/// Maximum number of gateways, against a ring of them.
const MAX_HOPS: u64 = 8;

/// Time in which a modern client can retry a call at a modern server.
const STATE_LIFETIME: Duration = Duration::from_secs(3600);

/// Members of the parameters that the gateway handles itself.
const OWN_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Members of `_meta` that belong to one side only.
const OWN_META: [&str; 8] = [
    keys::PROGRESS_TOKEN,
    keys::RELATED_TASK,
    keys::PROTOCOL_VERSION,
    keys::CLIENT_INFO,
    keys::CLIENT_CAPABILITIES,
    keys::LOG_LEVEL,
    keys::SUBSCRIPTION_ID,
    HOPS,
];

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
        let result = self.relay_call_once(server, request, target).await;
        match result {
            Err(error) if errors::requires_login(server.name(), &error) => {
                let error = server.login_error();
                if request.method() != "tools/call" {
                    return Err(error);
                }
                // A model can read this, and tell the user.
                let pair = RevisionPair::of_own_result(request.revision());
                let result = tool_error(&error.message);
                convert::result("tools/call", &result, pair, &self.identity)
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
        let params = RawObject::parse(request.params())?;
        let purpose = StatePurpose::new(server, request, &params, target);
        // Before anything is connected: a suspended call has its connection.
        if let Some(open) = self.resume(request, &params, &purpose)? {
            return self.await_open_call(open, request, &purpose).await;
        }
        let downstream = request.revision();
        let label = self.server_label(server);
        let call = RunningCall::new(request, &params, caller_key(request), label);
        let connection = match self.pool.get(server, request, Some(&call)).await {
            Ok(connection) => connection,
            Err(error)
                if request.method() == "tools/call"
                    && !is_stateless(downstream)
                    && !errors::requires_login(server.name(), &error) =>
            {
                // A model can read this, and may use another tool.
                tracing::debug!(
                    server = server.name(),
                    "a call failed because its server is down"
                );
                return Ok(tool_error(&error.message));
            }
            Err(error) => return Err(error),
        };
        let _opener = connection.opener_guard(&call);
        let pair = RevisionPair {
            downstream,
            upstream: connection.revision(),
        };
        let relayed = RelayedCall {
            gateway: self,
            connection: &connection,
            request,
            params: &params,
            target,
            pair,
            purpose: &purpose,
        };
        let result = match pair.client_request_path() {
            ClientRequestPath::Requests => relayed.send_directly(&call).await,
            ClientRequestPath::Results => relayed.pass_input_requests(&call).await,
            // A state that is not one of a suspended call never starts another call.
            ClientRequestPath::Suspend if params.get("requestState").is_some() => Err(call_again()),
            ClientRequestPath::Suspend => {
                let open = relayed.open_call(&call)?;
                return self.await_open_call(open, request, &purpose).await;
            }
            ClientRequestPath::RoundTrips => Box::pin(relayed.round_trips(&call)).await,
        };
        result
    }

    /// Takes the suspended call that a request continues, if it does.
    fn resume(
        &self,
        request: &RelayedRequest,
        params: &RawObject<'_>,
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
struct RelayedCall<'a> {
    gateway: &'a Arc<GatewayState>,
    connection: &'a Arc<Connection>,
    request: &'a RelayedRequest,
    params: &'a RawObject<'a>,
    target: Option<&'a TargetName>,
    pair: RevisionPair,
    /// What a sealed state is bound to.
    purpose: &'a StatePurpose<'a>,
}

impl RelayedCall<'_> {
    /// Both sides send client requests as requests.
    async fn send_directly(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let result = self.connection.relay(call, self.outgoing(&[])?).await;
        if let Err(CallError::Rejected { source, .. }) = &result {
            let required = required_elicitations(source).unwrap_or_default();
            for id in required.iter().filter_map(|params| id_of(params)) {
                self.request.expect_elicitation_complete(&id);
            }
        }
        self.finish(result)
    }

    /// Both sides have `input_required` results: they are passed on, with the state sealed for the caller.
    async fn pass_input_requests(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let mut added = Vec::new();
        if let Some(responses) = self.params.get("inputResponses") {
            added.push(("inputResponses", responses.to_owned()));
        }
        if let Some(sealed) = self.params.string("requestState")? {
            let state = self.request.open(&sealed, self.purpose.as_str());
            let state = state.and_then(|state| String::from_utf8(state).ok());
            let invalid = || {
                RpcError::invalid_params("`requestState` is not valid for this request; call again")
            };
            added.push(("requestState", state.ok_or_else(invalid)?));
        }
        let result = self.connection.relay(call, self.outgoing(&added)?).await;
        match result {
            Ok(result) if *result.kind() == ResultType::InputRequired => {
                self.seal_input_required(result.json())
            }
            result => self.finish(result),
        }
    }

    /// Seals the state of an `input_required` result for the caller.
    fn seal_input_required(&self, result: &str) -> Result<String, RpcError> {
        let object = RawObject::parse(result).map_err(|error| self.invalid(&error))?;
        let mut set = Vec::new();
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
            if OWN_MEMBERS.contains(&&*name) {
                continue;
            }
            match target.filter(|target| target.member == &*name) {
                Some(target) => params.member(&name, &target.value),
                None => params.member(&name, value),
            }
        }
        for (name, value) in added {
            params.member(name, value);
        }
        let mut outgoing = RelayRequest::new(request.method().to_owned(), params.finish());
        outgoing.meta = self.meta()?;
        outgoing.name = target_header(request.method(), target, self.params);
        // A legacy server has learned them when the connection was opened.
        if is_stateless(self.pair.upstream) {
            outgoing.capabilities = Some(relayed_capabilities(request));
            outgoing.client_info = Some(self.gateway.pool.client_info(self.connection, request));
        }
        outgoing.log_level = request.log_level();
        outgoing.progress = request.progress_token().is_some();
        let settings = &self.connection.server.settings;
        outgoing.headers = forwarded_headers(&settings.forward_headers, request);
        outgoing.timeouts = settings.timeouts;
        Ok(outgoing)
    }

    /// Returns the members of `_meta` for the server.
    fn meta(&self) -> Result<String, RpcError> {
        let meta = self.params.get("_meta").unwrap_or("{}");
        let meta = RawObject::parse(meta)?;
        let hops = meta
            .get(HOPS)
            .and_then(|hops| hops.parse().ok())
            .unwrap_or(0_u64);
        if hops >= MAX_HOPS {
            return Err(RpcError::internal(
                "the request has passed too many gateways",
            ));
        }
        let mut out = ObjectWriter::new();
        for (name, value) in meta.members() {
            if !OWN_META.contains(&&*name) {
                out.member(&name, value);
            }
        }
        out.member(HOPS, &(hops + 1).to_string());
        Ok(out.into_members())
    }

    fn finish(&self, result: Result<RelayResult, CallError>) -> Result<String, RpcError> {
        finish(
            self.gateway,
            self.connection,
            self.request.method(),
            self.pair,
            result,
        )
    }

    fn convert(&self, result: &str) -> Result<String, RpcError> {
        convert::result(
            self.request.method(),
            result,
            self.pair,
            &self.gateway.identity,
        )
        .map_err(|error| self.invalid(&error))
    }

    fn invalid(&self, error: &RpcError) -> RpcError {
        errors::invalid_result(self.connection.server.name(), error)
    }
}

/// Converts the outcome of a call for the client.
fn finish(
    gateway: &GatewayState,
    connection: &Connection,
    method: &str,
    pair: RevisionPair,
    result: Result<RelayResult, CallError>,
) -> Result<String, RpcError> {
    let server = connection.server.name();
    match result {
        Ok(result) => {
            let result = gateway.with_shown_uris(&connection.server, method, result.json());
            convert::result(method, &result, pair, &gateway.identity)
                .map_err(|error| errors::invalid_result(server, &error))
        }
        Err(error) => {
            let error = errors::call_failure(server, error);
            // A legacy tool says what it needs in its result, which a model can read.
            if error.code == code::MISSING_CAPABILITY
                && method == "tools/call"
                && !is_stateless(pair.downstream)
            {
                return Ok(tool_error(&error.message));
            }
            Err(convert::error(method, error, pair))
        }
    }
}

/// Returns the value of the header that repeats the name of the target.
fn target_header(
    method: &str,
    target: Option<&TargetName>,
    params: &RawObject<'_>,
) -> Option<String> {
    let member = Method::from_name(method)?.name_member?;
    match target.filter(|target| target.member == member) {
        Some(target) => Some(target.original.clone()),
        None => params.string(member).ok()?.map(String::from),
    }
}
