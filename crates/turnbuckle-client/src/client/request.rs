//! The path of a request, one function per step.
//!
//! 1. [`encode`](Client::encode) fills an [`OutgoingRequest`] for the negotiated revision.
//! 2. [`send_once`](Client::send_once) sends it, and waits for the response until a timeout.
//! 3. [`send`](Client::send) renews an ended session, or repeats a request with a lost response.
//! 4. [`send_with_input`](Client::send_with_input) resolves input requests and sends the request again.
//! 5. [`send_tool_call`](Client::send_tool_call) adds the parameter headers of a tool, and
//!    [`resolve_task`](create::resolve_task) waits for the task that a call may become.
//! 6. [`validate_output`](Client::validate_output) checks the result against the output schema of the tool.
//!
//! Steps 2 to 5 return a [`ReceivedResult`]. Rare branches of a step are boxed, because the future of every call is as
//! large as its largest branch.

use std::{
    mem::take,
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
};

use serde::de::DeserializeOwned;
use turnbuckle_protocol::{
    VersionedPayload,
    json::{self, JsonError},
    jsonrpc::code,
    method::{self, Method},
    timeouts::Timeouts,
    types::{CallToolResult, ResultType},
};

use crate::{
    call::CallOptions,
    client::{
        Client,
        retry::{is_repeatable, is_response_lost, needs_new_session},
        timeout::timed_out,
    },
    error::{CallError, ConnectError, TransportError},
    inbound::{
        message::{RawJson, RawResult},
        progress::ProgressGuard,
    },
    lifecycle::RevisionRules,
    round_trips::{self, AcceptsInputResponses, needs_round_trip},
    tasks::create,
    tools::{ToolCall, ToolOutput},
    transport::{
        OutgoingRequest,
        encode::{self, ToRevision},
    },
};

/// A received result, and its context.
#[derive(Debug)]
pub(crate) struct ReceivedResult {
    pub(crate) result: RawJson,
    pub(crate) kind: ResultType,
    pub(crate) rules: Arc<RevisionRules>,
    /// The number of round trips before this result.
    pub(crate) round_trips: usize,
    /// Keeps the progress token registered, because a task continues to report under it.
    pub(crate) progress_guard: Option<ProgressGuard>,
}

/// The entry points.
impl Client {
    /// Creates a request, which has to be encoded before it is sent.
    pub(crate) fn new_request<'a>(
        &self,
        method: &'static Method,
        options: &CallOptions,
    ) -> OutgoingRequest<'a> {
        OutgoingRequest::new(method, self.inner.rules(), options.auth_wait.clone())
    }

    /// Sends a request and parses its result, which must be complete.
    pub(crate) async fn request<P, R>(
        &self,
        method: &'static Method,
        params: P,
        options: &CallOptions,
    ) -> Result<R, CallError>
    where
        P: ToRevision,
        R: DeserializeOwned + VersionedPayload,
    {
        let mut request = self.new_request(method, options);
        let received = self.send(&mut request, &params, options).await?;
        require_complete(method.name, &received)?;
        received.read(method.name)
    }

    /// Calls a tool, waits for the task that the call may become, and validates the output.
    pub(crate) async fn call_and_validate(
        &self,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ToolOutput, CallError> {
        let tasks = create::requests_tasks(self);
        let received = if tasks && self.only_as_task(call.tool()) {
            Box::pin(create::call_as_task(self, call.clone(), options)).await?
        } else {
            let received = self.send_tool_call(call, options).await;
            match continue_if(received, |received| may_become_task(received, tasks)) {
                Break(received) => received?,
                Continue(received) => {
                    Box::pin(create::resolve_task(self, received, call, options)).await?
                }
            }
        };
        require_complete(method::TOOLS_CALL.name, &received)?;
        self.validate_output(Some(call.tool()), received.read(method::TOOLS_CALL.name)?)
    }
}

/// The steps, in order.
impl Client {
    /// Fills in a request for the negotiated revision, under a new id.
    fn encode(
        &self,
        request: &mut OutgoingRequest<'_>,
        params: &impl ToRevision,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let method = request.method;
        let negotiated = self.inner.negotiated_ref();
        let rules = &negotiated.rules;
        negotiated.check_method(method)?;
        if !Arc::ptr_eq(&request.rules, rules) {
            request.rules = Arc::clone(rules);
        }
        request.id = self.inner.ids.next();
        // A request that may take long asks for progress, because progress restarts the idle timeout.
        let reports = method.allows_input_requests || options.on_progress.is_some();
        request.progress_guard = request.id.as_i64().filter(|_| reports).map(|token| {
            let progress_registry = &self.inner.router.progress_registry;
            progress_registry.register(token, options.on_progress.clone())
        });
        let params = params.to_revision(rules.revision);
        let meta = Some(&options.meta).filter(|meta| !meta.is_empty());
        let encoded = encode::fill(request, &*params, self.inner.log_level(), meta);
        encoded.map_err(|error| CallError::Unsendable {
            method: method.name,
            reason: error.to_string(),
        })
    }

    /// Sends an encoded request and waits for its response, until a timeout.
    pub(crate) async fn send_once(
        &self,
        request: &mut OutgoingRequest<'_>,
        timeouts: &Timeouts,
    ) -> Result<ReceivedResult, CallError> {
        let (router, method) = (&self.inner.router, request.method.name);
        let mark_cancelled = router.cancelled_requests.mark_on_drop(request.id.clone());
        let body = take(&mut request.body);
        let response = tokio::select! {
            biased;
            response = self.inner.transport.send_request(request, body, router) => response,
            limit = timed_out(timeouts, router, request) => {
                return Err(CallError::TimedOut { method, limit });
            }
        };
        mark_cancelled.disarm();
        let progress_guard = request.progress_guard.take();
        let response = response.map_err(|source| transport_failure(method, source))?;
        let result = response
            .outcome
            .map_err(|error| CallError::rejected(method, error, response.http))?;
        ReceivedResult::new(method, result, &request.rules, progress_guard)
    }

    /// Encodes and sends a request. An ended session is renewed, and a request with a lost response is sent again if
    /// that is safe; both at most once.
    pub(crate) async fn send<P: ToRevision>(
        &self,
        request: &mut OutgoingRequest<'_>,
        params: &P,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.encode(request, params, options)?;
        let lost = match self.send_once(request, &options.timeouts).await {
            Err(CallError::Disconnected { source, .. }) => source,
            outcome => return outcome,
        };
        if needs_new_session(&lost, &request.rules) {
            Box::pin(self.send_in_new_session(lost, request, params, options)).await
        } else if is_response_lost(self, &lost, &request.rules) {
            Box::pin(self.send_again(lost, request, params, options)).await
        } else {
            Err(CallError::Disconnected {
                method: request.method.name,
                source: lost,
            })
        }
    }

    /// Renews an ended session, and sends the request again.
    ///
    /// Both attempts share one total timeout. The new session has its own timeout.
    async fn send_in_new_session<P: ToRevision>(
        &self,
        lost: TransportError,
        request: &mut OutgoingRequest<'_>,
        params: &P,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.renew_session_of(request, lost).await?;
        self.encode(request, params, options)?;
        self.send_once(request, &options.timeouts).await
    }

    /// Renews the ended session of a request. The time until then does not count.
    pub(crate) async fn renew_session_of(
        &self,
        request: &mut OutgoingRequest<'_>,
        lost: TransportError,
    ) -> Result<(), CallError> {
        request.pause();
        let rules = Arc::clone(&request.rules);
        let renewed = Arc::clone(&self.inner).renew_session(rules).await;
        renewed.map_err(|error| {
            tracing::debug!(%error, "the session was not renewed");
            let source = match error {
                ConnectError::Authorization(failure) => TransportError::Authorization(failure),
                _ => lost,
            };
            transport_failure(request.method.name, source)
        })?;
        request.resume();
        Ok(())
    }

    /// Sends a request again after its response was lost, once and only if that is safe.
    ///
    /// Since 2026-07-28 a broken response stream cannot be resumed; its request has to be sent again under a new id
    /// (`2026-07-28/basic/patterns`, changelog). The first request may have taken effect, so only requests without side
    /// effects, or idempotent ones, are sent again. All others fail with [`CallError::EffectUnknown`].
    async fn send_again<P: ToRevision>(
        &self,
        lost: TransportError,
        request: &mut OutgoingRequest<'_>,
        params: &P,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        let method = request.method.name;
        if !is_repeatable(self, request) {
            return Err(CallError::EffectUnknown {
                method,
                source: lost,
            });
        }
        tracing::debug!(method, %lost, "request sent again because its response was lost");
        request.start_new_attempt();
        self.encode(request, params, options)?;
        self.send_once(request, &options.timeouts).await
    }

    /// Sends a request, and resolves input requests until there is a result, within the limits of the call.
    pub(crate) async fn send_with_input<P: AcceptsInputResponses>(
        &self,
        request: &mut OutgoingRequest<'_>,
        params: &P,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        let first = self.send(request, params, options).await;
        match continue_if(first, needs_round_trip) {
            Break(received) => received,
            Continue(first) => {
                Box::pin(round_trips::resume(self, first, request, params, options)).await
            }
        }
    }

    /// Sends a tool call with its parameter headers; the result may be a task.
    pub(crate) async fn send_tool_call(
        &self,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.ensure_pinned(call.tool()).await?;
        let mut request = self.new_tool_request(call, options)?;
        let received = self.send_with_input(&mut request, call, options).await;
        let has_param_headers = self.tool_policy().param_headers_sent;
        match continue_if(received, |received| {
            has_param_headers && is_header_mismatch(received)
        }) {
            Break(received) => received,
            Continue(rejected) => {
                Box::pin(self.retry_with_new_headers(rejected, request, call, options)).await
            }
        }
    }

    /// Validates the output of a tool against its output schema, if one is cached.
    pub(crate) fn validate_output(
        &self,
        tool: Option<&str>,
        result: CallToolResult,
    ) -> Result<ToolOutput, CallError> {
        let invalid = tool.and_then(|tool| {
            let reason = self.inner.tools.check_output(tool, &result)?;
            Some((tool.to_owned(), reason))
        });
        let output = ToolOutput::from(result);
        match invalid {
            None => Ok(output),
            Some((tool, reason)) => Err(CallError::InvalidOutput {
                tool,
                reason,
                output: Box::new(output),
            }),
        }
    }
}

impl ReceivedResult {
    fn new(
        method: &'static str,
        result: RawResult,
        rules: &Arc<RevisionRules>,
        progress_guard: Option<ProgressGuard>,
    ) -> Result<Self, CallError> {
        let (result, kind) = if rules.has_result_type {
            result
                .into_parts()
                .map_err(|error| invalid(method, &error))?
        } else {
            // Not checked to be an object: parsing it reports the error.
            (result.json, ResultType::Complete)
        };
        Ok(Self {
            result,
            kind,
            rules: Arc::clone(rules),
            round_trips: 0,
            progress_guard,
        })
    }

    /// Parses the result into the newest types.
    pub(crate) fn read<R: DeserializeOwned + VersionedPayload>(
        &self,
        method: &'static str,
    ) -> Result<R, CallError> {
        let mut result: R =
            json::from_str(self.result.as_str()).map_err(|error| invalid(method, &error))?;
        result.upgrade_from(self.rules.revision);
        Ok(result)
    }
}

/// Returns `Continue` if the condition holds, and `Break` otherwise. By value, so that the result does not stay part of
/// the caller's future.
pub(crate) fn continue_if(
    received: Result<ReceivedResult, CallError>,
    condition: impl FnOnce(&Result<ReceivedResult, CallError>) -> bool,
) -> ControlFlow<Result<ReceivedResult, CallError>, Result<ReceivedResult, CallError>> {
    if condition(&received) {
        Continue(received)
    } else {
        Break(received)
    }
}

/// Returns an error unless the result is complete.
pub(crate) fn require_complete(
    method: &'static str,
    received: &ReceivedResult,
) -> Result<(), CallError> {
    match &received.kind {
        ResultType::Complete => Ok(()),
        other => Err(CallError::InvalidResponse {
            method,
            reason: format!("unexpected result type `{}`", other.as_str()),
        }),
    }
}

/// A server may also reject a plain call of a tool that runs only as a task, so an error can lead to a task.
fn may_become_task(received: &Result<ReceivedResult, CallError>, tasks: bool) -> bool {
    match received {
        Ok(received) => received.kind == ResultType::Task,
        Err(_) => tasks,
    }
}

fn is_header_mismatch(received: &Result<ReceivedResult, CallError>) -> bool {
    let error = received.as_ref().err().and_then(CallError::rpc);
    error.is_some_and(|error| error.code == code::HEADER_MISMATCH)
}

fn invalid(method: &'static str, error: &JsonError) -> CallError {
    CallError::InvalidResponse {
        method,
        reason: error.to_string(),
    }
}

fn transport_failure(method: &'static str, source: TransportError) -> CallError {
    match source {
        TransportError::InvalidResponse { reason } => CallError::InvalidResponse { method, reason },
        error @ TransportError::WrongIdType { .. } => CallError::InvalidResponse {
            method,
            reason: error.to_string(),
        },
        source => CallError::disconnected(method, source),
    }
}
