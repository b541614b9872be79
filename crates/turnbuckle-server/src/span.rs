//! The span of a request, named by the semantic conventions of OpenTelemetry for MCP.
//!
//! `traceparent` and `tracestate` of the request are fields of it, so that a subscriber can make the caller's span its
//! parent. Arguments and results are never in it, and of a session's id only the beginning: who knows all of it can speak
//! in its name.

use tracing::{Span, field::Empty};
use turnbuckle_protocol::jsonrpc::{Excerpt, Request};

use crate::{
    Server,
    context::Call,
    exchange::Outcome,
    lifecycle::Caller,
    middleware::{Ending, is_offered, target},
};

/// How much of a session's id is shown.
const SHOWN: usize = 6;

/// Says whether no subscriber wants any span of this level: one comparison.
pub(crate) fn nobody_listens() -> bool {
    !tracing::level_enabled!(tracing::Level::INFO)
}

/// Opens the span of a request, or none where nobody wants it.
pub(crate) fn of(server: &Server, request: &Request<'_>, caller: &Caller) -> Span {
    let span = tracing::info_span!(
        "mcp.request",
        otel.name = Empty,
        otel.kind = "server",
        otel.status_code = Empty,
        mcp.method.name = Empty,
        mcp.protocol.version = caller.rules.version(),
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
        describe(&span, server, request, caller);
    }
    span
}

fn describe(span: &Span, server: &Server, request: &Request<'_>, caller: &Caller) {
    let method = &*request.method;
    let target = target(request);
    let target = target.as_deref();
    match target {
        // Only what the server offers: names that clients invent would never end.
        Some(target) if is_offered(server, caller.principal.as_deref(), method, Some(target)) => {
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
        span.record(field, tracing::field::display(Excerpt(target)));
    }
    if method == "tools/call" {
        span.record("gen_ai.operation.name", "execute_tool");
    }
    let id = request.id.to_string();
    span.record("jsonrpc.request.id", tracing::field::display(Excerpt(&id)));
    span.record("network.transport", caller.transport());
    if let Some(session) = session(caller) {
        span.record(
            "mcp.session.id",
            tracing::field::display(format_args!("{session}…")),
        );
    }
    if let Some(peer) = caller.peer {
        span.record("client.address", tracing::field::display(peer.ip()));
        span.record("client.port", peer.port());
    }
    if let Some(trace) = &caller.trace {
        trace
            .traceparent()
            .map(|parent| span.record("traceparent", parent));
        trace
            .tracestate()
            .map(|state| span.record("tracestate", state));
    }
}

/// The field for what a method is about.
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

/// The beginning of the id of the session that a request belongs to.
fn session(caller: &Caller) -> Option<&str> {
    // Whoever speaks for itself has none, whatever its headers say.
    caller.live.as_ref()?;
    let id = caller.headers.as_ref()?.get("mcp-session-id")?;
    id.to_str().ok()?.get(..SHOWN)
}

/// Notes how the request ended.
pub(crate) fn end(span: &Span, call: &Call, outcome: &Outcome) {
    match outcome {
        Err(error) => {
            span.record(
                "rpc.response.status_code",
                tracing::field::display(error.code),
            );
            fail(span, Ending::Error { code: error.code });
        }
        Ok(_) if call.is_tool_error() => fail(span, Ending::ToolError),
        Ok(_) => {}
    }
}

/// Notes that the request got no answer.
pub(crate) fn cancel(span: &Span) {
    fail(span, Ending::Cancelled);
}

fn fail(span: &Span, ending: Ending) {
    span.record("otel.status_code", "ERROR");
    if let Some(kind) = ending.error_type() {
        span.record("error.type", &*kind);
    }
}
