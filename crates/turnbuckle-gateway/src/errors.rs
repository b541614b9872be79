//! Failures of upstream servers, as errors for clients.
//!
//! A client gets the name of the server and the class of the failure, never a host, a command line or text of the
//! server's stderr. The details are logged. An invalid response is logged with an incident id, which the client gets too.

use std::{error::Error, io, time::Duration};

use serde_json::json;
use turnbuckle_client::{
    CallError, ConnectError, TransportError,
    http::HttpError,
    stdio::{ExitReason, ProcessExited, SpawnError},
};
use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::RelayedRequest;

use crate::upstream::connection::OpenError;

/// The class of a server that rejects the credentials of the gateway, or requires some.
pub(crate) const LOGIN_REQUIRED: &str = "login required";

/// Returns the class of a failed connection.
pub(crate) fn connect_reason(error: &OpenError) -> String {
    let error = match error {
        OpenError::Connect(error) => error,
        OpenError::Ring => return "ring of gateways".to_owned(),
    };
    let class = match error {
        ConnectError::Unreachable(error) => return transport_reason(error),
        ConnectError::SpawnFailed(
            SpawnError::NotFound { .. }
            | SpawnError::NoInterpreter { .. }
            | SpawnError::NoFolder { .. },
        ) => "not found",
        ConnectError::SpawnFailed(_) => "not started",
        ConnectError::Authorization(_) => LOGIN_REQUIRED,
        ConnectError::NoCommonRevision { .. } => "no common revision",
        ConnectError::TimedOut { .. } => "timeout",
        ConnectError::Rejected { status, .. } => {
            return status.map_or("rejected".to_owned(), |status| {
                status_reason(status.as_u16())
            });
        }
        ConnectError::InvalidResponse { .. } => "invalid response",
        _ => "unreachable",
    };
    class.to_owned()
}

/// Returns the class of a failed transport.
pub(crate) fn transport_reason(error: &TransportError) -> String {
    let class = match error {
        TransportError::ProcessExited(exited) => return exit_reason(exited),
        TransportError::ErrorResponse(response) => {
            return status_reason(response.status.as_u16());
        }
        TransportError::Closed | TransportError::ClientClosed => "closed",
        TransportError::Authorization(_) => LOGIN_REQUIRED,
        TransportError::SessionEnded => "session ended",
        TransportError::MessageTooLarge { .. } => "message too large",
        TransportError::Http(error) => http_reason(error),
        TransportError::Io(error) => io_reason(error.kind()),
        _ => "invalid response",
    };
    class.to_owned()
}

fn status_reason(status: u16) -> String {
    match status {
        401 | 403 => LOGIN_REQUIRED.to_owned(),
        status => format!("HTTP status {status}"),
    }
}

fn exit_reason(exited: &ProcessExited) -> String {
    match exited.exit {
        ExitReason::Code(code) => format!("exited {code}"),
        ExitReason::Signal(signal) => format!("killed by signal {signal}"),
        _ => "exited".to_owned(),
    }
}

fn http_reason(error: &HttpError) -> &'static str {
    match error {
        HttpError::Connect { source, .. } => dial_reason(&**source),
        HttpError::ConnectTimedOut { .. } | HttpError::SendTimedOut { .. } => "timeout",
        HttpError::ConnectionBroken(_) => "closed",
        HttpError::Authorization(_) => LOGIN_REQUIRED,
        HttpError::NoTls | HttpError::Tls(_) => "tls",
        HttpError::TooLarge { .. } => "message too large",
        HttpError::OtherOrigin { .. }
        | HttpError::InvalidRedirect { .. }
        | HttpError::TooManyRedirects { .. } => "redirect",
        _ => "invalid response",
    }
}

/// Returns the class of a failed dial: that of the first I/O error that has one.
fn dial_reason(error: &(dyn Error + 'static)) -> &'static str {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            match error.kind() {
                // The handshake of TLS reports its errors as invalid data.
                io::ErrorKind::InvalidData => return "tls",
                // An unknown host is of another kind, with the text of the resolver as its source.
                io::ErrorKind::Other if error.get_ref().is_some() => {}
                kind => return io_reason(kind),
            }
        }
        cause = error.source();
    }
    "unreachable"
}

fn io_reason(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "not found",
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::TimedOut => "timeout",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::UnexpectedEof => "closed",
        _ => "unreachable",
    }
}

/// Returns the error for a server that cannot be reached; the request was not sent.
pub(crate) fn unreachable(server: &str, reason: &str) -> RpcError {
    down(server, reason, None)
}

/// Like [`unreachable`], with the time since when the server is down.
pub(crate) fn down(server: &str, reason: &str, since: Option<&str>) -> RpcError {
    let time = since.map_or(String::new(), |since| format!(" since {since}"));
    let mut data = json!({ "server": server, "kind": "down", "reason": reason, "effect": "none" });
    if let Some(since) = since {
        data["since"] = since.into();
    }
    RpcError::internal(format!("server `{server}` is down{time}: {reason}")).with_data(data)
}

/// Returns the error for a request to a server that requires a login; it had no effect.
pub(crate) fn login_required(server: &str, hint: Option<&str>) -> RpcError {
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    RpcError::internal(format!("server `{server}` requires a login{hint}"))
        .with_data(json!({ "server": server, "kind": LOGIN_KIND, "effect": "none" }))
}

/// The kind of errors because of a missing login.
const LOGIN_KIND: &str = "login";

/// Returns whether a server requires a login. Servers cannot send such an error: it has the name of the server.
pub(crate) fn requires_login(server: &str, error: &RpcError) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data["kind"] == LOGIN_KIND && data["server"] == server)
}

/// Returns the error for a request that would need one connection too many; it was not sent.
pub(crate) fn busy(server: &str) -> RpcError {
    RpcError::internal(format!("server `{server}` has too many connections"))
        .with_data(json!({ "server": server, "kind": "busy", "effect": "none" }))
}

/// Returns the error for a request that was not sent, because its session or the gateway ended.
pub(crate) fn closing(server: &str) -> RpcError {
    RpcError::internal(format!("the connection to server `{server}` was closed"))
        .with_data(json!({ "server": server, "kind": "disconnected", "effect": "none" }))
}

/// Returns the error for a server that did not finish in time.
pub(crate) fn timeout(server: &str, limit: Duration) -> RpcError {
    RpcError::internal(format!(
        "server `{server}` did not respond within {limit:?}"
    ))
    .with_data(json!({ "server": server, "kind": "timeout", "effect": "unknown" }))
}

/// Returns the error for a failed request.
pub(crate) fn call_failure(server: &str, error: CallError) -> RpcError {
    if error
        .status()
        .is_some_and(|status| matches!(status.as_u16(), 401 | 403))
    {
        tracing::debug!(server, %error, "a server rejected the credentials");
        return login_required(server, None);
    }
    let unsent = error.is_unsent();
    let retry_after = error.retry_after().or_else(|| overload_delay(&error));
    let (kind, message) = match error {
        CallError::Rejected { source, .. } if retry_after.is_none() => return *source,
        CallError::Rejected { source, .. } => return with_retry_after(*source, retry_after),
        CallError::TimedOut { limit, .. } => (
            "timeout",
            format!("server `{server}` did not respond within {limit:?}"),
        ),
        error @ CallError::Authorization { .. } => {
            tracing::warn!(server, %error, "the credentials for a server are missing");
            return login_required(server, None);
        }
        CallError::Disconnected { source, .. }
        | CallError::EffectUnknown { source, .. }
        | CallError::NotConnected { source, .. } => {
            if is_invalid(&source) {
                return invalid_response(server, &source.to_string());
            }
            tracing::debug!(server, error = %source, "a relayed request failed");
            let reason = transport_reason(&source);
            (
                "disconnected",
                format!("the connection to server `{server}` failed: {reason}"),
            )
        }
        CallError::Unsendable { reason, .. } => {
            return RpcError::invalid_params(format!("the request cannot be sent: {reason}"));
        }
        error => return invalid_response(server, &error.to_string()),
    };
    let effect = if unsent { "none" } else { "unknown" };
    let data = json!({ "server": server, "kind": kind, "effect": effect });
    with_retry_after(RpcError::internal(message).with_data(data), retry_after)
}

/// Time after which a client may try again, if an overloaded server does not name one.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Returns the default delay for a response with a status that tells the client to try again.
fn overload_delay(error: &CallError) -> Option<Duration> {
    let status = error.status()?.as_u16();
    matches!(status, 429 | 503).then_some(DEFAULT_RETRY_DELAY)
}

/// Sets the HTTP status of an error with a delay before another attempt.
pub(crate) fn for_client(request: &RelayedRequest, error: RpcError) -> RpcError {
    let delay = |error: &RpcError| error.data.as_ref()?.get("retryAfterMs")?.as_u64();
    match delay(&error) {
        Some(delay) => request.retry_later(error, Duration::from_millis(delay)),
        None => error,
    }
}

/// Adds the delay before another attempt to `data`, unless the server has set it.
fn with_retry_after(mut error: RpcError, delay: Option<Duration>) -> RpcError {
    let Some(delay) = delay else {
        return error;
    };
    let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    match &mut error.data {
        Some(serde_json::Value::Object(data)) => {
            data.entry("retryAfterMs").or_insert(delay.into());
        }
        Some(_) => {}
        none => *none = Some(json!({ "retryAfterMs": delay })),
    }
    error
}

/// Returns whether a transport failed because of what the server sent.
fn is_invalid(error: &TransportError) -> bool {
    match error {
        TransportError::Http(error) => matches!(
            &**error,
            HttpError::UnexpectedContentType { .. }
                | HttpError::UnexpectedEncoding { .. }
                | HttpError::InvalidSessionId
                | HttpError::InvalidEndpoint { .. }
        ),
        TransportError::LspFraming
        | TransportError::MessageTooLarge { .. }
        | TransportError::WrongIdType { .. }
        | TransportError::MultilineMessage
        | TransportError::InvalidResponse { .. } => true,
        _ => false,
    }
}

/// Returns the error for a result of a server that cannot be converted.
pub(crate) fn invalid_result(server: &str, error: &RpcError) -> RpcError {
    invalid_response(server, &error.message)
}

/// Maximum size of an excerpt of a response in the log.
const MAX_EXCERPT_BYTES: usize = 1_024;

/// Logs an invalid response under an incident id, and returns the error with that id.
fn invalid_response(server: &str, problem: &str) -> RpcError {
    let incident = new_incident_id();
    let mut end = problem.len().min(MAX_EXCERPT_BYTES);
    while !problem.is_char_boundary(end) {
        end -= 1;
    }
    let problem = &problem[..end];
    tracing::warn!(server, %incident, problem, "a server sent an invalid response");
    RpcError::internal(format!(
        "server `{server}` sent an invalid response, incident {incident}"
    ))
    .with_data(json!({
        "server": server, "kind": "invalid", "effect": "unknown", "incident": incident,
    }))
}

fn new_incident_id() -> String {
    let mut bytes = [0; 6];
    // Without randomness the incident is still logged, but its id is not unique.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use turnbuckle_client::TransportError;

    use super::*;

    fn connect(kind: io::ErrorKind) -> TransportError {
        let source = io::Error::new(kind, "secret.example:8080 said no");
        TransportError::from(HttpError::Connect {
            origin: "http://secret.example:8080".to_owned(),
            source: Box::new(source),
        })
    }

    #[test]
    fn reasons_are_classes_without_hosts() {
        for (error, reason) in [
            (connect(io::ErrorKind::ConnectionRefused), "refused"),
            (connect(io::ErrorKind::InvalidData), "tls"),
            (connect(io::ErrorKind::TimedOut), "timeout"),
            (connect(io::ErrorKind::Other), "unreachable"),
            (io::Error::from(io::ErrorKind::NotFound).into(), "not found"),
        ] {
            assert_eq!(transport_reason(&error), reason);
        }
    }

    #[test]
    fn an_overloaded_server_delays_the_client() {
        let rejected = |status: u16, retry_after| CallError::Rejected {
            method: "tools/call",
            source: Box::new(RpcError::internal("later")),
            status: http::StatusCode::from_u16(status).ok(),
            retry_after,
        };
        let delay = |error| call_failure("x", error).data;
        let named = rejected(429, Some(Duration::from_secs(2)));
        assert_eq!(delay(named), Some(json!({ "retryAfterMs": 2_000 })));
        assert_eq!(
            delay(rejected(503, None)),
            Some(json!({ "retryAfterMs": 5_000 }))
        );
        assert_eq!(delay(rejected(500, None)), None);
    }

    #[test]
    fn an_excerpt_stays_in_the_log() {
        let error = invalid_response("x", &"stderr of the server ä".repeat(1_000));
        assert!(!error.message.contains("stderr"), "{}", error.message);
        assert_eq!(error.data.unwrap()["kind"], "invalid");
    }
}
