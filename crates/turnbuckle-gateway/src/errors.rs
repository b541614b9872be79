//! Failures of upstream servers, as errors for clients.
//!
//! A client gets the name of the server and the class of the failure, never a host, a command line or text of the
//! server's stderr. The details are logged.

use serde_json::json;
use turnbuckle_client::{CallError, ConnectError, TransportError};
use turnbuckle_protocol::RpcError;

/// Returns the class of a failed connection.
pub(crate) fn connect_reason(error: &ConnectError) -> String {
    match error {
        ConnectError::Unreachable(error) => transport_reason(error),
        ConnectError::SpawnFailed(_) => "not started".to_owned(),
        ConnectError::Authorization(_) => "login required".to_owned(),
        ConnectError::NoCommonRevision { .. } => "no common revision".to_owned(),
        ConnectError::TimedOut { .. } => "timeout".to_owned(),
        ConnectError::Rejected { .. } => "rejected".to_owned(),
        ConnectError::InvalidResponse { .. } => "invalid response".to_owned(),
        _ => "unreachable".to_owned(),
    }
}

fn transport_reason(error: &TransportError) -> String {
    match error {
        TransportError::ProcessExited(_) => "exited".to_owned(),
        TransportError::Closed | TransportError::ClientClosed => "closed".to_owned(),
        TransportError::Authorization(_) => "login required".to_owned(),
        TransportError::ErrorResponse(response) => {
            format!("HTTP status {}", response.status.as_u16())
        }
        TransportError::SessionEnded => "session ended".to_owned(),
        TransportError::MessageTooLarge { .. } => "message too large".to_owned(),
        TransportError::Http(_) | TransportError::Io(_) => "unreachable".to_owned(),
        _ => "invalid response".to_owned(),
    }
}

/// Returns the error for a server that cannot be reached; the request was not sent.
pub(crate) fn unreachable(server: &str, reason: &str) -> RpcError {
    RpcError::internal(format!("server `{server}` is down: {reason}"))
        .with_data(json!({ "server": server, "kind": "down", "reason": reason, "effect": "none" }))
}

/// Returns the error for a failed request.
pub(crate) fn call_failure(server: &str, error: CallError) -> RpcError {
    tracing::debug!(server, %error, "a relayed request failed");
    let unsent = error.is_unsent();
    let retry_after_ms = error
        .retry_after()
        .map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    let (kind, message) = match error {
        CallError::Rejected { source, .. } => return *source,
        CallError::TimedOut { limit, .. } => (
            "timeout",
            format!("server `{server}` did not respond within {limit:?}"),
        ),
        CallError::Authorization { .. } => ("login", format!("server `{server}` requires a login")),
        CallError::Disconnected { source, .. } | CallError::EffectUnknown { source, .. } => {
            let reason = transport_reason(&source);
            (
                "disconnected",
                format!("the connection to server `{server}` failed: {reason}"),
            )
        }
        _ => (
            "invalid",
            format!("server `{server}` sent an invalid response"),
        ),
    };
    let effect = if unsent { "none" } else { "unknown" };
    let mut data = json!({ "server": server, "kind": kind, "effect": effect });
    if let Some(delay) = retry_after_ms {
        data["retryAfterMs"] = delay.into();
    }
    RpcError::internal(message).with_data(data)
}

/// Returns the error for a result of a server that cannot be converted.
pub(crate) fn invalid_result(server: &str, error: &RpcError) -> RpcError {
    tracing::warn!(server, error = %error.message, "a server sent an invalid result");
    RpcError::internal(format!("server `{server}` sent an invalid response"))
        .with_data(json!({ "server": server, "kind": "invalid", "effect": "unknown" }))
}
