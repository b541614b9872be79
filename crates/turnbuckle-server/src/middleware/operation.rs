//! What a layer knows of a request.

use std::sync::Arc;

use turnbuckle_protocol::{
    Principal, RequestId, RpcError,
    jsonrpc::Request,
    meta::TraceContext,
    method::Method,
    types::{CallToolResult, ClientCapabilities, Implementation},
};

use super::{Answer, Ending};
use crate::{Context, RequestError, Server, context::Call, reply::Reply};

/// A request as a layer sees it: what is asked for, of whom, and by whom. Cheap to clone.
#[derive(Clone)]
pub struct Operation {
    subject: Arc<Subject>,
    cx: Context,
}

struct Subject {
    method: Box<str>,
    target: Option<Box<str>>,
    is_offered: bool,
    arguments: Option<Box<str>>,
}

impl Operation {
    pub(super) fn new(call: Arc<Call>, request: &Request<'_>) -> Self {
        let target = target(request);
        let subject = Subject {
            is_offered: is_offered(
                &call.server,
                call.caller.principal.as_deref(),
                &request.method,
                target.as_deref(),
            ),
            method: (*request.method).into(),
            target: target.map(Into::into),
            arguments: request.params.get("arguments").map(Into::into),
        };
        Self {
            subject: Arc::new(subject),
            cx: Context { call },
        }
    }

    /// The method, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.subject.method
    }

    /// What it is about: the name of a tool or a prompt, or the URI of a resource. As the client wrote it, so it may be
    /// anything, and of any length.
    pub fn target(&self) -> Option<&str> {
        self.subject.target.as_deref()
    }

    /// The target, if it is a tool or a prompt that this server offers to the caller. There are only so many of them, so tables and
    /// the labels of metrics stay small.
    pub fn offered(&self) -> Option<&str> {
        self.target().filter(|_| self.subject.is_offered)
    }

    /// The tool that is called, if this server offers it to the caller.
    pub fn tool(&self) -> Option<&str> {
        self.offered().filter(|_| self.method() == "tools/call")
    }

    /// The arguments of a tool or a prompt, as JSON text.
    pub fn arguments(&self) -> Option<&str> {
        self.subject.arguments.as_deref()
    }

    /// Says whether a handler of yours answers it, and not a list of this server or a subscription.
    pub fn has_handler(&self) -> bool {
        let call = &self.cx.call;
        matches!(
            self.method(),
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete"
        ) || call
            .server
            .extension_method(self.method(), call.caller.rules)
            .is_some()
    }

    /// Who is asking, if the transport could tell.
    pub fn principal(&self) -> Option<&Principal> {
        self.cx.principal()
    }

    /// What the client says about itself.
    pub fn client(&self) -> Option<&Implementation> {
        self.cx.client()
    }

    /// What the client can do.
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        self.cx.client_capabilities()
    }

    /// The id of the request.
    pub fn request_id(&self) -> &RequestId {
        self.cx.request_id()
    }

    /// The revision of the protocol that the answer is written in.
    pub fn protocol_version(&self) -> &'static str {
        self.call().caller.rules.version()
    }

    /// How the request came: `tcp` for HTTP, `pipe` for stdio and other byte streams.
    pub fn transport(&self) -> &'static str {
        self.call().caller.transport()
    }

    /// Where the request belongs in a distributed trace.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.cx.trace()
    }

    /// Something that the transport or a layer below it put into the request, as [`Context::get`] has it.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.cx.get()
    }

    /// The server that answers.
    pub fn server(&self) -> &Server {
        self.cx.server()
    }

    /// Answers with a failure that is nobody's fault: a tool tells the model by an `isError` result, all else is the error
    /// -32603. The message is for whoever reads the answer.
    pub fn fail(&self, message: impl Into<String>) -> Answer {
        if self.method() != "tools/call" {
            return RpcError::internal(message).into();
        }
        let mut result = CallToolResult::error(message);
        let reply = Reply::new(self.call());
        let body = reply.with_meta(&mut result, |result| &mut result.meta, None);
        Answer::new(Ok(body), Ending::ToolError)
    }

    /// Answers with an error that the client sees, as a prompt or a resource would.
    pub fn refuse(&self, error: RequestError) -> Answer {
        let subject = self.target().unwrap_or(self.method());
        error
            .into_rpc_error(self.call().caller.rules, subject)
            .into()
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.cx.call
    }
}

/// The tool, prompt or URI that a request names.
pub(crate) fn target<'a>(request: &Request<'a>) -> Option<std::borrow::Cow<'a, str>> {
    let member = Method::named(&request.method)?.name_member?;
    request.params.string(member).ok().flatten()
}

/// Says whether a target is one of the tools or prompts that a server offers to a caller.
pub(crate) fn is_offered(
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
            .field("method", &self.subject.method)
            .field("target", &self.subject.target)
            .field("request_id", self.request_id())
            .finish_non_exhaustive()
    }
}
