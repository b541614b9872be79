//! The tracing span of a request, named by the OpenTelemetry semantic conventions for MCP.
//!
//! `traceparent` and `tracestate` are fields, so that a subscriber can link to the caller's span. Arguments and results
//! are not recorded. A session id is truncated, because the whole id grants access to the session.

use tracing::{Span, field::Empty};
use turnbuckle_protocol::jsonrpc::{Request, Truncated};

use crate::{
    Server,
    lifecycle::RequestOrigin,
    middleware::{OperationOutcome, is_registered, target},
    request::{RequestContext, ResponseResult},
};

/// Number of characters of a session id that are recorded.
const SHOWN_ID_CHARS: usize = 6;

/// Returns whether spans of this level are disabled, with one comparison.
pub(crate) fn is_disabled() -> bool {
    !tracing::level_enabled!(tracing::Level::INFO)
}

/// Opens the span of a request. It is disabled if no subscriber is interested.
pub(crate) fn for_request(server: &Server, request: &Request<'_>, origin: &RequestOrigin) -> Span {
    let span = tracing::info_span!(
        "mcp.request",
        otel.name = Empty,
        otel.kind = "server",
        otel.status_code = Empty,
        mcp.method.name = Empty,
        mcp.protocol.version = origin.rules.version(),
        mcp.session.id = Empty,
        mcp.resource.uri = Empty,
        gen_ai.operation.name = Empty,
        gen_ai.tool.name = Empty,
        gen_ai.prompt.name = Empty,
        jsonrpc.request.id = Empty,
        rpc.response.status_code = Empty,
        "error.type" = Empty,
        network.transport = Empty,
        client.address = Empty,
        client.port = Empty,
        traceparent = Empty,
        tracestate = Empty,
    );
    if !span.is_disabled() {
        describe(&span, server, request, origin);
    }
    span
}

fn describe(span: &Span, server: &Server, request: &Request<'_>, origin: &RequestOrigin) {
    let method = &*request.method;
    let target = target(request);
    let target = target.as_deref();
    match target {
        // Only registered names, because clients could send unlimited others.
        Some(target)
            if is_registered(server, origin.principal.as_deref(), method, Some(target)) =>
        {
            span.record(
                "otel.name",
                tracing::field::display(format_args!("{method} {target}")),
            );
        }
        _ => {
            span.record("otel.name", method);
        }
    }
    span.record("mcp.method.name", method);
    if let Some((field, target)) = field_of(method).zip(target) {
        span.record(field, tracing::field::display(Truncated(target)));
    }
    if method == "tools/call" {
        span.record("gen_ai.operation.name", "execute_tool");
    }
    let id = request.id.to_string();
    span.record(
        "jsonrpc.request.id",
        tracing::field::display(Truncated(&id)),
    );
    span.record("network.transport", origin.transport());
    if let Some(session) = session(origin) {
        span.record(
            "mcp.session.id",
            tracing::field::display(format_args!("{session}…")),
        );
    }
    if let Some(peer) = origin.peer {
        span.record("client.address", tracing::field::display(peer.ip()));
        span.record("client.port", peer.port());
    }
    if let Some(trace) = &origin.trace {
        trace
            .traceparent()
            .map(|parent| span.record("traceparent", parent));
        trace
            .tracestate()
            .map(|state| span.record("tracestate", state));
    }
}

/// Returns the field for the target of a method.
fn field_of(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" => Some("gen_ai.tool.name"),
        "prompts/get" => Some("gen_ai.prompt.name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            Some("mcp.resource.uri")
        }
        _ => None,
    }
}

/// Returns the truncated session id of a request.
fn session(origin: &RequestOrigin) -> Option<&str> {
    // Stateless requests are never part of a session, whatever their headers contain.
    origin.runtime.as_ref()?;
    let id = origin.headers.as_ref()?.get("mcp-session-id")?;
    id.to_str().ok()?.get(..SHOWN_ID_CHARS)
}

/// Records the result of the request.
pub(crate) fn record_result(span: &Span, call: &RequestContext, outcome: &ResponseResult) {
    match outcome {
        Err(error) => {
            span.record(
                "rpc.response.status_code",
                tracing::field::display(error.code),
            );
            record_error(span, OperationOutcome::Error { code: error.code });
        }
        Ok(_) if call.is_tool_error() => record_error(span, OperationOutcome::ToolError),
        Ok(_) => {}
    }
}

/// Records a request without a response.
pub(crate) fn record_cancellation(span: &Span) {
    record_error(span, OperationOutcome::Cancelled);
}

fn record_error(span: &Span, outcome: OperationOutcome) {
    span.record("otel.status_code", "ERROR");
    if let Some(kind) = outcome.error_type() {
        span.record("error.type", &*kind);
    }
}
