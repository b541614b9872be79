//! Operations: requests as layers see them.

use std::sync::Arc;

use turnbuckle_protocol::{
    Principal, RequestId, RpcError,
    jsonrpc::Request,
    meta::TraceContext,
    method::Method,
    types::{CallToolResult, ClientCapabilities, Implementation},
};

use super::{OperationOutcome, OperationResponse};
use crate::{
    Context, RequestError, Server,
    request::{RequestContext, response::ResponseWriter},
};

/// A request as a layer sees it. Cheap to clone.
#[derive(Clone)]
pub struct Operation {
    target_info: Arc<OperationTarget>,
    cx: Context,
}

struct OperationTarget {
    method: Box<str>,
    target: Option<Box<str>>,
    is_registered: bool,
    arguments: Option<Box<str>>,
}

impl Operation {
    pub(super) fn new(call: Arc<RequestContext>, request: &Request<'_>) -> Self {
        let target = target(request);
        let subject = OperationTarget {
            is_registered: is_registered(
                &call.server,
                call.origin.principal.as_deref(),
                &request.method,
                target.as_deref(),
            ),
            method: (*request.method).into(),
            target: target.map(Into::into),
            arguments: request.params.get("arguments").map(Into::into),
        };
        Self {
            target_info: Arc::new(subject),
            cx: Context { call },
        }
    }

    /// The method, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.target_info.method
    }

    /// The name of the tool or prompt, or the URI of the resource, as sent by the client. It can be any text of any
    /// length.
    pub fn target(&self) -> Option<&str> {
        self.target_info.target.as_deref()
    }

    /// The target, if it is a registered tool or prompt that the caller may see. The number of values is bounded, so it
    /// is safe for tables and metric labels.
    pub fn registered_name(&self) -> Option<&str> {
        self.target().filter(|_| self.target_info.is_registered)
    }

    /// The called tool, if it is registered and visible to the caller.
    pub fn tool(&self) -> Option<&str> {
        self.registered_name()
            .filter(|_| self.method() == "tools/call")
    }

    /// The arguments of a tool or a prompt, as JSON text.
    pub fn arguments(&self) -> Option<&str> {
        self.target_info.arguments.as_deref()
    }

    /// Returns whether a handler of your program responds, not a list or subscription.
    pub fn has_handler(&self) -> bool {
        let call = &self.cx.call;
        matches!(
            self.method(),
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete"
        ) || call
            .server
            .extension_method(self.method(), call.origin.rules)
            .is_some()
    }

    /// The authenticated caller, if the transport knows it.
    pub fn principal(&self) -> Option<&Principal> {
        self.cx.principal()
    }

    /// The client's name and version, as reported by the client.
    pub fn client(&self) -> Option<&Implementation> {
        self.cx.client()
    }

    /// The client's capabilities.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        self.cx.client_capabilities()
    }

    /// The id of the request.
    pub fn request_id(&self) -> &RequestId {
        self.cx.request_id()
    }

    /// The revision of the response.
    pub fn protocol_version(&self) -> &'static str {
        self.call().origin.rules.version()
    }

    /// The transport: `tcp` for HTTP, `pipe` for stdio and other byte streams.
    pub fn transport(&self) -> &'static str {
        self.call().origin.transport()
    }

    /// The trace context of the request.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.cx.trace()
    }

    /// Returns a value attached to the request; see [`Context::get`].
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.cx.get()
    }

    /// The server.
    pub fn server(&self) -> &Server {
        self.cx.server()
    }

    /// Responds with a failure: an `isError` result for a tool, else the error -32603. The message is sent to the
    /// client.
    pub fn tool_error(&self, message: impl Into<String>) -> OperationResponse {
        if self.method() != "tools/call" {
            return RpcError::internal(message).into();
        }
        let mut result = CallToolResult::error(message);
        let reply = ResponseWriter::new(self.call());
        let body = reply.with_meta(&mut result, |result| &mut result.meta, None);
        OperationResponse::new(Ok(body), OperationOutcome::ToolError)
    }

    /// Responds with an error, as a prompt or resource would.
    pub fn reject(&self, error: RequestError) -> OperationResponse {
        let subject = self.target().unwrap_or(self.method());
        error
            .into_rpc_error(self.call().origin.rules, subject)
            .into()
    }

    pub(super) fn cx(&self) -> &Context {
        &self.cx
    }

    pub(super) fn call(&self) -> &Arc<RequestContext> {
        &self.cx.call
    }
}

/// Returns the tool, prompt or URI that a request names.
pub(crate) fn target<'a>(request: &Request<'a>) -> Option<std::borrow::Cow<'a, str>> {
    let member = Method::from_name(&request.method)?.name_member?;
    request.params.string(member).ok().flatten()
}

/// Returns whether the target is a registered tool or prompt that the caller may see.
pub(crate) fn is_registered(
    server: &Server,
    principal: Option<&Principal>,
    method: &str,
    target: Option<&str>,
) -> bool {
    let Some(target) = target else {
        return false;
    };
    let catalog = server.catalog();
    match method {
        "tools/call" => catalog.tools.get(target, principal).is_some(),
        "prompts/get" => catalog.prompts.get(target, principal).is_some(),
        _ => false,
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("method", &self.target_info.method)
            .field("target", &self.target_info.target)
            .field("request_id", self.request_id())
            .finish_non_exhaustive()
    }
}
