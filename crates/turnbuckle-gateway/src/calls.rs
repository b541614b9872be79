//! Relays one request to one server.

pub(crate) mod running;
pub(crate) mod suspended;

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use turnbuckle_client::relay::{RelayRequest, RelayResult};
use turnbuckle_protocol::{
    RpcError, jsonrpc::RawObject, meta::keys, method::Method, types::ResultType,
};
use turnbuckle_server::relay::RelayedRequest;

use self::{
    running::{RunningCall, client_request_method, tool_error},
    suspended::{CallEvent, OpenCall},
};
use crate::{
    convert, errors,
    gateway::GatewayState,
    lifecycle::{ClientRequestPath, RevisionPair, is_stateless},
    raw_json::ObjectWriter,
    upstream::{
        UpstreamServer,
        connection::Connection,
        pool::{caller_key, relayed_capabilities},
    },
};

/// Counts the gateways that a request has passed.
const HOPS: &str = "dev.turnbuckle/hops";
/// Maximum number of gateways, against a ring of them.
const MAX_HOPS: u64 = 8;

/// Maximum number of round trips of a call at a modern server for a legacy client.
const MAX_ROUND_TRIPS: usize = 10;
/// The first delay before a retry without responses; it doubles up to the maximum.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Time in which a modern client can retry a call at a modern server.
const STATE_LIFETIME: Duration = Duration::from_secs(3600);

/// Members of the parameters that the gateway handles itself.
const OWN_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Members of `_meta` that belong to one side only.
const OWN_META: [&str; 7] = [
    keys::PROGRESS_TOKEN,
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
        let params = RawObject::parse(request.params())?;
        let purpose = state_purpose(server, request, &params, target);
        // The revision of the server is not known before it is connected; legacy clients get its requests directly.
        let downstream = request.revision();
        let opening = RevisionPair {
            downstream,
            upstream: downstream,
        };
        let opener = RunningCall::new(request, caller_key(request), opening);
        let connection = match self.pool.get(server, request, Some(&opener)).await {
            Ok(connection) => connection,
            Err(error) if request.method() == "tools/call" && !is_stateless(downstream) => {
                // A model can read this, and may use another tool.
                tracing::debug!(
                    server = server.name(),
                    "a call failed because its server is down"
                );
                return Ok(tool_error(&error.message));
            }
            Err(error) => return Err(error),
        };
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
            ClientRequestPath::Requests => relayed.send_directly().await,
            ClientRequestPath::Results => relayed.pass_input_requests().await,
            ClientRequestPath::Suspend => relayed.suspendable().await,
            ClientRequestPath::RoundTrips => relayed.round_trips().await,
        };
        connection.opener_ended(&opener);
        result
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
    purpose: &'a str,
}

impl RelayedCall<'_> {
    /// Both sides send client requests as requests.
    async fn send_directly(&self) -> Result<String, RpcError> {
        let call = self.running_call();
        let result = self.connection.relay(&call, self.outgoing(&[])?).await;
        self.finish(result)
    }

    /// Both sides have `input_required` results: they are passed on, with the state sealed for the caller.
    async fn pass_input_requests(&self) -> Result<String, RpcError> {
        let mut added = Vec::new();
        if let Some(responses) = self.params.get("inputResponses") {
            added.push(("inputResponses", responses.to_owned()));
        }
        if let Some(sealed) = self.params.string("requestState")? {
            let state = self.request.open(&sealed, self.purpose);
            let state = state.and_then(|state| String::from_utf8(state).ok());
            let invalid = || {
                RpcError::invalid_params("`requestState` is not valid for this request; call again")
            };
            added.push(("requestState", state.ok_or_else(invalid)?));
        }
        let call = self.running_call();
        let result = self.connection.relay(&call, self.outgoing(&added)?).await;
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
                .seal(state.as_bytes(), self.purpose, STATE_LIFETIME);
            set.push(("requestState", crate::raw_json::quote(&sealed)));
        }
        let result =
            crate::raw_json::edit(result, &[], &set).map_err(|error| self.invalid(&error))?;
        self.convert(&result)
    }

    /// The server sends client requests, and the client gets them in results. The call at the server stays open.
    async fn suspendable(&self) -> Result<String, RpcError> {
        let open = match self.params.string("requestState")? {
            Some(state) => {
                let open = self
                    .gateway
                    .suspended
                    .resume(&state, self.request, self.purpose)?;
                let responses = self.params.get("inputResponses").unwrap_or("{}");
                open.call.deliver(&RawObject::parse(responses)?);
                open
            }
            None => self.start_open_call()?,
        };
        match open.next().await {
            CallEvent::Result(result) => result,
            CallEvent::InputRequests(requests) => {
                let suspended = &self.gateway.suspended;
                let state = suspended.suspend(open, self.request, self.purpose)?;
                let mut out = ObjectWriter::new();
                out.string("resultType", "input_required");
                out.member("inputRequests", &requests);
                out.string("requestState", &state);
                out.member("_meta", &self.gateway.identity);
                Ok(out.finish())
            }
        }
    }

    fn start_open_call(&self) -> Result<OpenCall, RpcError> {
        let call = self.running_call();
        let outgoing = self.outgoing(&[])?;
        let (connection, running) = (Arc::clone(self.connection), Arc::clone(&call));
        let (gateway, pair) = (Arc::clone(self.gateway), self.pair);
        let method = self.request.method().to_owned();
        Ok(OpenCall::start(call, async move {
            let result = connection.relay(&running, outgoing).await;
            finish(&gateway, &connection, &method, pair, result)
        }))
    }

    /// The server returns `input_required`, and the client gets requests. The call is repeated with their responses.
    async fn round_trips(&self) -> Result<String, RpcError> {
        let call = self.running_call();
        let mut added: Vec<(&str, String)> = Vec::new();
        let mut delay = FIRST_RETRY_DELAY;
        for _ in 0..=MAX_ROUND_TRIPS {
            let result = self.connection.relay(&call, self.outgoing(&added)?).await;
            let result = match result {
                Ok(result) if *result.kind() == ResultType::InputRequired => result,
                result => return self.finish(result),
            };
            let object = RawObject::parse(result.json()).map_err(|error| self.invalid(&error))?;
            added.clear();
            match object.get("inputRequests").map(RawObject::parse) {
                Some(Ok(requests)) if requests.members().next().is_some() => {
                    match self.respond_to(&call, &requests).await? {
                        Ok(responses) => added.push(("inputResponses", responses)),
                        Err(failed) => return Ok(failed),
                    }
                }
                Some(Err(error)) => return Err(self.invalid(&error)),
                _ => {
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                }
            }
            if let Some(state) = object.get("requestState") {
                added.push(("requestState", state.to_owned()));
            }
        }
        Err(RpcError::internal("the server requested input too often"))
    }

    /// Sends input requests to the client, all at once, and returns the responses as a JSON object. A request that the
    /// client rejects ends the call: the inner error is the result of a tool.
    async fn respond_to(
        &self,
        call: &Arc<RunningCall>,
        requests: &RawObject<'_>,
    ) -> Result<Result<String, String>, RpcError> {
        let mut pending = tokio::task::JoinSet::new();
        let mut entries = Vec::new();
        for (key, entry) in requests.members() {
            let entry = RawObject::parse(entry).map_err(|error| self.invalid(&error))?;
            let method = entry.string("method").ok().flatten();
            let method = method.as_deref().and_then(client_request_method);
            let Some(method) = method else {
                return self.reject_input("the server requested input of an unknown kind");
            };
            let params = entry.get("params").unwrap_or("{}");
            if call.has_declared(method, params).is_err() {
                let message =
                    format!("the server requires `{method}`, which the client does not support");
                return self.reject_input(&message);
            }
            let RevisionPair {
                downstream,
                upstream,
            } = self.pair;
            let params = convert::client_request_params(method, params, upstream, downstream)?;
            entries.push((key.into_owned(), method, params));
        }
        for (key, method, params) in entries {
            let request = self.request.clone();
            pending.spawn(async move {
                let response = request.request_client(method, &params).await;
                (key, method, response)
            });
        }
        let mut responses = ObjectWriter::new();
        while let Some(joined) = pending.join_next().await {
            let (key, method, response) =
                joined.map_err(|error| RpcError::internal(error.to_string()))?;
            match response {
                Ok(response) => responses.member(&key, &response),
                Err(error) => {
                    let message = format!("`{method}` failed: {}", error.message);
                    return self.reject_input(&message);
                }
            }
        }
        Ok(Ok(responses.finish()))
    }

    /// Ends a call because its input cannot be had: as the result of a tool, which a model can read, or as an error.
    fn reject_input(&self, message: &str) -> Result<Result<String, String>, RpcError> {
        if self.request.method() == "tools/call" {
            return Ok(Err(tool_error(message)));
        }
        Err(RpcError::internal(message.to_owned()))
    }

    fn running_call(&self) -> Arc<RunningCall> {
        RunningCall::new(self.request, caller_key(self.request), self.pair)
    }

    /// Returns the request for the server: renamed, without the members of this side, and with `added` ones.
    fn outgoing(&self, added: &[(&str, String)]) -> Result<RelayRequest, RpcError> {
        let (request, target) = (self.request, self.target);
        let mut params = ObjectWriter::new();
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
        outgoing.capabilities = Some(relayed_capabilities(request));
        outgoing.client_info = Some(self.gateway.pool.client_info(self.connection, request));
        outgoing.log_level = request.log_level();
        outgoing.progress = request.progress_token().is_some();
        outgoing.timeouts = self.connection.server.settings.timeouts;
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

    fn finish(
        &self,
        result: Result<RelayResult, turnbuckle_client::CallError>,
    ) -> Result<String, RpcError> {
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
    result: Result<RelayResult, turnbuckle_client::CallError>,
) -> Result<String, RpcError> {
    let server = connection.server.name();
    match result {
        Ok(result) => convert::result(method, result.json(), pair, &gateway.identity)
            .map_err(|error| errors::invalid_result(server, &error)),
        Err(error) => Err(convert::error(
            method,
            errors::call_failure(server, error),
            pair,
        )),
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

/// Returns what a sealed state is bound to, in addition to the caller: server, method, target and arguments.
fn state_purpose(
    server: &UpstreamServer,
    request: &RelayedRequest,
    params: &RawObject<'_>,
    target: Option<&TargetName>,
) -> String {
    let mut digest = Sha256::new();
    for part in [
        server.name(),
        request.method(),
        target.map_or("", |target| &target.original),
        params.get("arguments").unwrap_or(""),
        params.get("uri").unwrap_or(""),
    ] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
