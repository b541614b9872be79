//! One request and its response: encoded for the revision, timed, and parsed.

use std::{ops::ControlFlow, sync::Arc};

use serde::de::DeserializeOwned;
use turnbuckle_protocol::{
    RequestId, VersionedPayload,
    json::{self, JsonError},
    method::{self, Method, RequiredCapability},
    types::{ResultType, ServerCapabilities},
};

use crate::{
    call::CallOptions,
    client::{Client, RequestTimer, timeout::timed_out},
    error::{CallError, ConnectError, TransportError},
    inbound::{
        message::{RawJson, RawResult},
        progress::ProgressGuard,
    },
    lifecycle::{Negotiated, RevisionRules},
    transport::{
        OutgoingRequest,
        encode::{self, HeaderList, MetaFields, ToRevision},
        http::HttpError,
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

/// The additions to a request that are not parameters.
#[derive(Debug, Default)]
pub(crate) struct RequestExtras<'a> {
    /// The value of the `Mcp-Name` header.
    pub(crate) name: Option<&'a str>,
    /// Further headers, such as `Mcp-Param-*`.
    pub(crate) headers: HeaderList,
}

impl Client {
    /// Sends a request and parses its result, which must be complete.
    pub(crate) async fn request<P, R>(
        &self,
        method: &'static Method,
        params: P,
        extras: RequestExtras<'_>,
        options: &CallOptions,
    ) -> Result<R, CallError>
    where
        P: ToRevision,
        R: DeserializeOwned + VersionedPayload,
    {
        let received = self.send_request(method, &params, &extras, options).await?;
        require_complete(method.name, &received)?;
        received.read(method.name)
    }

    /// Sends a request. An ended session is renewed, and a request with a lost response is sent again if that is
    /// safe; both at most once.
    pub(crate) async fn send_request<P>(
        &self,
        method: &'static Method,
        params: &P,
        extras: &RequestExtras<'_>,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError>
    where
        P: ToRevision,
    {
        let negotiated = self.inner.negotiated();
        let mut request = self.prepare(&negotiated, method, params, extras, options)?;
        let timer = RequestTimer::start(options);
        let source = match self.exchange(&mut request, options, &timer).await {
            Err(CallError::Disconnected { source, .. }) => source,
            outcome => return outcome,
        };
        drop(request);
        // Boxed, because it is rare and would enlarge the future of every request.
        if needs_new_session(&source, &negotiated.rules) {
            let left = timer.remaining(options);
            let anew = self.send_in_new_session(negotiated, source, method, params, extras, left);
            return Box::pin(anew).await;
        }
        if self.is_response_lost(&source, &negotiated.rules) {
            let left = timer.remaining(options);
            let again = self.reissue(negotiated, source, method, params, extras, left);
            return Box::pin(again).await;
        }
        Err(CallError::Disconnected {
            method: method.name,
            source,
        })
    }

    /// Renews an ended session, and sends the request again.
    async fn send_in_new_session<P>(
        &self,
        over: Arc<Negotiated>,
        source: TransportError,
        method: &'static Method,
        params: &P,
        extras: &RequestExtras<'_>,
        // Both requests share one total timeout. The new session has its own timeout.
        options: CallOptions,
    ) -> Result<ReceivedResult, CallError>
    where
        P: ToRevision,
    {
        let renewed = Arc::clone(&self.inner).renew_session(over).await;
        renewed.map_err(|error| {
            tracing::debug!(%error, "the session was not renewed");
            let source = match error {
                ConnectError::Authorization(failure) => TransportError::Authorization(failure),
                _ => source,
            };
            disconnected(method.name, source)
        })?;
        let negotiated = self.inner.negotiated();
        let mut request = self.prepare(&negotiated, method, params, extras, &options)?;
        let timer = RequestTimer::start(&options);
        self.exchange(&mut request, &options, &timer).await
    }

    /// Encodes a request for the negotiated revision.
    pub(super) fn prepare(
        &self,
        negotiated: &Negotiated,
        method: &'static Method,
        params: &impl ToRevision,
        extras: &RequestExtras<'_>,
        options: &CallOptions,
    ) -> Result<PreparedRequest, CallError> {
        let rules = &negotiated.rules;
        check_capability(method, &negotiated.server.capabilities, rules)?;
        let id = self.inner.ids.next();
        // A request that may take long asks for progress, because progress restarts the idle timeout.
        let reports = method.allows_input_requests || options.on_progress.is_some();
        let progress_guard = id.as_i64().filter(|_| reports).map(|token| {
            let progress_registry = &self.inner.router.progress_registry;
            progress_registry.register(token, options.on_progress.clone())
        });
        let extra = MetaFields {
            progress_token: reports.then_some(&id),
            log_level: self.inner.log_level(),
            meta: Some(&options.meta).filter(|meta| !meta.is_empty()),
        };
        let body = encode(&id, method, params, rules, &extra)?;
        let mut headers = encode::headers(rules, method.name, extras.name);
        headers.extend_from_slice(&extras.headers);
        let outgoing = OutgoingRequest {
            id,
            method: method.name,
            body,
            headers,
            rules: Arc::clone(rules),
            auth_wait: options.auth_wait.clone(),
        };
        Ok(PreparedRequest {
            outgoing,
            progress_guard,
        })
    }

    /// Sends a request and waits for its response, until a timeout.
    pub(super) async fn exchange(
        &self,
        request: &mut PreparedRequest,
        options: &CallOptions,
        timer: &RequestTimer,
    ) -> Result<ReceivedResult, CallError> {
        let PreparedRequest {
            outgoing,
            progress_guard,
        } = request;
        let (router, method) = (&self.inner.router, outgoing.method);
        let mark_cancelled = router.cancelled_requests.mark_on_drop(outgoing.id.clone());
        let response = tokio::select! {
            biased;
            response = self.inner.transport.request(outgoing, router) => response,
            limit = timed_out(options, router, progress_guard.as_ref(), timer) => {
                return Err(CallError::TimedOut { method, limit });
            }
        };
        mark_cancelled.disarm();
        let response = response.map_err(|source| disconnected(method, source))?;
        let result = response
            .outcome
            .map_err(|error| CallError::rejected(method, error, response.http))?;
        ReceivedResult::new(method, result, &outgoing.rules, progress_guard.take())
    }
}

/// A request that is ready to be sent, and its progress registration.
pub(super) struct PreparedRequest {
    outgoing: OutgoingRequest,
    progress_guard: Option<ProgressGuard>,
}

/// Serializes a request for the negotiated revision.
fn encode(
    id: &RequestId,
    method: &'static Method,
    params: &impl ToRevision,
    rules: &RevisionRules,
    extra: &MetaFields<'_>,
) -> Result<Vec<u8>, CallError> {
    let params = params.to_revision(rules.revision);
    let body = encode::request(id, method.name, &*params, rules, extra);
    body.map_err(|error| CallError::Unsendable {
        method: method.name,
        reason: error.to_string(),
    })
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
        ControlFlow::Continue(received)
    } else {
        ControlFlow::Break(received)
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

fn invalid(method: &'static str, error: &JsonError) -> CallError {
    CallError::InvalidResponse {
        method,
        reason: error.to_string(),
    }
}

fn disconnected(method: &'static str, source: TransportError) -> CallError {
    match source {
        TransportError::InvalidResponse { reason } => CallError::InvalidResponse { method, reason },
        source => CallError::disconnected(method, source),
    }
}

/// Returns whether the server has certainly not processed the request, and requires a new session.
fn needs_new_session(error: &TransportError, rules: &RevisionRules) -> bool {
    match error {
        TransportError::SessionEnded => true,
        // The server used to respond as 2026-07-28 defines, and now does not send JSON-RPC at all.
        TransportError::ErrorResponse(error_response) => {
            !rules.session && matches!(error_response.status.as_u16(), 400 | 404 | 405)
        }
        _ => false,
    }
}

/// Returns an error if the server did not advertise the capability that a method needs.
fn check_capability(
    method: &'static Method,
    capabilities: &ServerCapabilities,
    rules: &RevisionRules,
) -> Result<(), CallError> {
    if !method.is_in(rules.revision) {
        return Err(CallError::NotInRevision {
            method: method.name,
            revision: rules.revision,
        });
    }
    let Some(needed) = method.capability else {
        return Ok(());
    };
    let (declared, capability) = match needed {
        RequiredCapability::Tools => (capabilities.tools.is_some(), "tools"),
        RequiredCapability::Resources => (capabilities.resources.is_some(), "resources"),
        RequiredCapability::ResourcesSubscribe => {
            let resources = capabilities.resources.as_ref();
            let subscribe = resources.and_then(|resources| resources.subscribe);
            (subscribe == Some(true), "resources.subscribe")
        }
        RequiredCapability::Prompts => (capabilities.prompts.is_some(), "prompts"),
        RequiredCapability::Completions => {
            let declared = capabilities.completions.is_some() || !rules.completions_need_capability;
            (declared, "completions")
        }
        RequiredCapability::Logging => (capabilities.logging.is_some(), "logging"),
        // Checked by the callers that handle both task designs, or declared by this client.
        _ => return Ok(()),
    };
    if declared {
        Ok(())
    } else {
        Err(CallError::CapabilityNotAdvertised {
            method: method.name,
            capability,
        })
    }
}

/// The methods that only read. The methods of unknown extensions may have side effects, whatever their name.
const READ_ONLY_METHODS: [&str; 13] = [
    method::SERVER_DISCOVER.name,
    method::TOOLS_LIST.name,
    method::RESOURCES_LIST.name,
    method::RESOURCES_TEMPLATES_LIST.name,
    method::RESOURCES_READ.name,
    method::PROMPTS_LIST.name,
    method::PROMPTS_GET.name,
    method::COMPLETION_COMPLETE.name,
    method::TASKS_GET.name,
    method::TASKS_LIST.name,
    "resources/directory/read",
    "skills/get",
    "skills/list",
];

impl Client {
    /// Returns whether the server may have received the request, but its response is lost.
    pub(super) fn is_response_lost(&self, error: &TransportError, rules: &RevisionRules) -> bool {
        rules.reissue_lost_requests && self.inner.transport.is_http() && is_lost_response(error)
    }

    /// Sends a request again after its response was lost, once and only if that is safe.
    ///
    /// Since 2026-07-28 a broken response stream cannot be resumed; its request has to be sent again under a new id
    /// (`2026-07-28/basic/patterns`, changelog). The first request may have taken effect, so only requests without side
    /// effects, or idempotent ones, are sent again. All others fail with [`CallError::EffectUnknown`].
    pub(super) async fn reissue<P: ToRevision>(
        &self,
        negotiated: Arc<Negotiated>,
        lost: TransportError,
        method: &'static Method,
        params: &P,
        extras: &RequestExtras<'_>,
        // Both requests share one total timeout.
        options: CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        if !self.is_repeatable(method, extras.name) {
            return Err(CallError::EffectUnknown {
                method: method.name,
                source: lost,
            });
        }
        tracing::debug!(method = method.name, %lost, "request sent again because its response was lost");
        let mut request = self.prepare(&negotiated, method, params, extras, &options)?;
        let timer = RequestTimer::start(&options);
        self.exchange(&mut request, &options, &timer).await
    }

    /// Returns whether a request can be received twice without a further effect.
    ///
    /// The annotations of a tool may be wrong. But the call is repeated to the same server, which could repeat it on
    /// its own.
    fn is_repeatable(&self, method: &Method, name: Option<&str>) -> bool {
        if method.name == method::TOOLS_CALL.name {
            return name.is_some_and(|tool| self.inner.tools.is_repeatable(tool));
        }
        is_read_only(method)
    }
}

/// Returns whether a method is free of side effects.
fn is_read_only(method: &Method) -> bool {
    READ_ONLY_METHODS.contains(&method.name)
}

/// Returns whether a request was sent over HTTP, and the connection broke before its response.
pub(crate) fn is_lost_response(error: &TransportError) -> bool {
    match error {
        TransportError::Closed => true,
        TransportError::Http(error) => matches!(**error, HttpError::ConnectionBroken(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_methods_are_taken_to_change_nothing() {
        for read in [
            &method::TOOLS_LIST,
            &method::TASKS_LIST,
            &method::PROMPTS_GET,
        ] {
            assert!(is_read_only(read), "{}", read.name);
        }
        assert!(is_read_only(&Method::for_extension("skills/list")));
        for unknown in ["queue/list", "com.example/list", "tasks/cancel"] {
            assert!(!is_read_only(&Method::for_extension(unknown)), "{unknown}");
        }
    }
}
