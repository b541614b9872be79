//! A request that runs on an upstream connection, and the client requests that the server sends for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::{Notify, oneshot};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::RawObject,
    meta::keys,
    types::{ClientCapabilities, LogLevel},
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    convert,
    lifecycle::{ClientRequestPath, RevisionPair},
    lock,
    raw_json::{ObjectWriter, edit, quote},
};

/// Identifies the caller of a request: its principal, or the session or connection it belongs to.
///
/// `None` if nothing shows that two requests come from one caller.
pub(crate) type CallerKey = Option<Arc<str>>;

/// A request that runs on an upstream connection.
pub(crate) struct RunningCall {
    pub(crate) caller: CallerKey,
    pub(crate) capabilities: ClientCapabilities,
    path: ClientRequestPath,
    pair: RevisionPair,
    /// The request of the client that waits for the result. `None` while the call is suspended.
    downstream: Mutex<Option<RelayedRequest>>,
    inputs: Mutex<InputTable>,
    /// Notified when there is a new input request, or the result.
    pub(crate) changed: Notify,
}

/// The client requests of a suspended call.
#[derive(Default)]
struct InputTable {
    next_key: u64,
    open: BTreeMap<String, OpenInput>,
}

/// A client request without a response.
struct OpenInput {
    method: &'static str,
    params: String,
    response: oneshot::Sender<Result<String, RpcError>>,
}

impl RunningCall {
    pub(crate) fn new(
        request: &RelayedRequest,
        caller: CallerKey,
        pair: RevisionPair,
    ) -> Arc<Self> {
        let capabilities = request.context().client_capabilities().clone();
        Arc::new(Self {
            caller,
            capabilities,
            path: pair.client_request_path(),
            pair,
            downstream: Mutex::new(Some(request.clone())),
            inputs: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Lets another request of the client wait for the result.
    pub(crate) fn attach(&self, request: &RelayedRequest) {
        *lock(&self.downstream) = Some(request.clone());
    }

    /// Forgets the request of the client, because it got a response.
    pub(crate) fn detach(&self) {
        *lock(&self.downstream) = None;
    }

    /// Returns whether a request of the client waits for the result.
    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.downstream).is_some()
    }

    fn downstream(&self) -> Option<RelayedRequest> {
        lock(&self.downstream).clone()
    }

    /// Returns whether the client declared what a client request needs.
    pub(crate) fn has_declared(&self, method: &str, params: &str) -> Result<(), RpcError> {
        let capabilities = &self.capabilities;
        let is_url = || {
            let mode = RawObject::parse(params).ok()?.string("mode").ok()??;
            Some(mode == "url")
        };
        match method {
            "roots/list" if capabilities.roots.is_some() => Ok(()),
            "sampling/createMessage" if capabilities.sampling.is_some() => Ok(()),
            "elicitation/create" if capabilities.elicitation.is_some() => {
                let declared = match is_url() {
                    Some(true) => capabilities.can_elicit_url(),
                    _ => capabilities.can_elicit_form(),
                };
                let undeclared =
                    || RpcError::invalid_params("the client did not declare this elicitation mode");
                declared.then_some(()).ok_or_else(undeclared)
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    /// Passes a client request of the server on to the client, and returns its result in the server's revision.
    pub(crate) async fn request_client(
        &self,
        method: &'static str,
        params: &str,
    ) -> Result<String, RpcError> {
        self.has_declared(method, params)?;
        let RevisionPair {
            downstream,
            upstream,
        } = self.pair;
        let params = convert::client_request_params(method, params, upstream, downstream)?;
        let result = match (self.path, self.downstream()) {
            (ClientRequestPath::Requests, Some(request)) => {
                request.request_client(method, &params).await?
            }
            (ClientRequestPath::Suspend, _) => self.suspend(method, &params).await?,
            _ => return Err(RpcError::internal("no call of a client is running")),
        };
        convert::client_request_result(method, &result, downstream, upstream)
    }

    /// Adds an input request, and waits until the client retries with its response.
    async fn suspend(&self, method: &'static str, params: &str) -> Result<String, RpcError> {
        let (response, receiver) = oneshot::channel();
        let params = edit(params, &["elicitationId", "_meta"], &[])?;
        let key = {
            let mut inputs = self.inputs();
            inputs.next_key += 1;
            let key = format!("q{}", inputs.next_key);
            let open = OpenInput {
                method,
                params,
                response,
            };
            inputs.open.insert(key.clone(), open);
            key
        };
        // The server may cancel its request, which drops this future.
        let _remove = RemoveInputOnDrop { call: self, key };
        self.changed.notify_one();
        let ended = |_| Err(RpcError::internal("the call has ended"));
        receiver.await.unwrap_or_else(ended)
    }

    /// Returns the open input requests as a JSON object, or `None` if there are none.
    pub(crate) fn input_requests(&self) -> Option<String> {
        let inputs = self.inputs();
        if inputs.open.is_empty() {
            return None;
        }
        let mut out = ObjectWriter::new();
        for (key, input) in &inputs.open {
            let mut request = ObjectWriter::new();
            request.string("method", input.method);
            request.member("params", &input.params);
            out.member(key, &request.finish());
        }
        Some(out.finish())
    }

    /// Delivers the responses of a retry; unknown keys are ignored, and missing ones stay open.
    pub(crate) fn deliver(&self, responses: &RawObject<'_>) {
        let mut inputs = self.inputs();
        for (key, response) in responses.members() {
            if let Some(input) = inputs.open.remove(&*key) {
                let _ = input.response.send(Ok(response.to_owned()));
            }
        }
    }

    /// Ends all open input requests, because the client did not respond in time.
    pub(crate) fn expire_inputs(&self) {
        let open = std::mem::take(&mut self.inputs().open);
        for input in open.into_values() {
            let _ = input.response.send(match input.method {
                "elicitation/create" => Ok(r#"{"action":"cancel"}"#.to_owned()),
                _ => Err(RpcError::internal("the client did not respond")),
            });
        }
    }

    /// Passes progress on to the client, under its own token.
    pub(crate) fn progress(&self, params: &str) {
        let Some(request) = self.downstream() else {
            return;
        };
        let Some(token) = request.progress_token() else {
            return;
        };
        let token = token.raw().into_owned();
        if let Ok(params) = edit(params, &[], &[(keys::PROGRESS_TOKEN, token)]) {
            request.notify("notifications/progress", &params);
        }
    }

    /// Passes a log message on to the client, if it accepts messages of this level.
    pub(crate) fn log(&self, params: &str) {
        let Some(request) = self.downstream() else {
            return;
        };
        let level = RawObject::parse(params)
            .ok()
            .and_then(|object| object.string("level").ok()?)
            .and_then(|level| level.parse::<LogLevel>().ok());
        let accepted = request.log_level();
        if level
            .zip(accepted)
            .is_some_and(|(level, accepted)| level >= accepted)
        {
            request.notify("notifications/message", params);
        }
    }

    /// Passes another notification on to the client.
    pub(crate) fn notify(&self, method: &str, params: &str) {
        if let Some(request) = self.downstream() {
            request.notify(method, params);
        }
    }

    fn inputs(&self) -> MutexGuard<'_, InputTable> {
        lock(&self.inputs)
    }
}

/// Removes an input request when it is no longer waited for.
struct RemoveInputOnDrop<'a> {
    call: &'a RunningCall,
    key: String,
}

impl Drop for RemoveInputOnDrop<'_> {
    fn drop(&mut self) {
        self.call.inputs().open.remove(&self.key);
    }
}

/// Returns the method of a client request as a constant.
pub(crate) fn client_request_method(method: &str) -> Option<&'static str> {
    ["elicitation/create", "sampling/createMessage", "roots/list"]
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
