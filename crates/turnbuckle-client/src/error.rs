//! Errors of connecting, of calls, and of the transports below both.
//!
//! The text of an error contains that of its sources, so that printing the error alone is enough. `source()` is for
//! programs that look for the type of a cause.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use turnbuckle_auth::AuthorizationError;
use turnbuckle_protocol::{RequestId, Revision, RpcError, codec::headers::UnencodableArgument};

use crate::{
    inbound::message::HttpMetadata,
    tools::{ToolDigest, ToolOutput},
    transport::{
        http::{HttpError, InvalidHttpUrl, InvalidRequestHeader},
        stdio::{ProcessExited, SpawnError},
    },
};

/// The client could not connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is invalid.
    #[error("the URL is invalid: {0}")]
    Url(#[from] InvalidHttpUrl),
    /// A configured header is invalid.
    #[error("a header is invalid: {0}")]
    Header(#[from] InvalidRequestHeader),
    /// The server is unreachable, or the connection broke before negotiation finished.
    #[error("the server cannot be reached: {0}")]
    Unreachable(#[source] TransportError),
    /// The server requires authorization, and no credentials could be obtained.
    #[error(transparent)]
    Authorization(AuthorizationError),
    /// The server program could not be started.
    #[error(transparent)]
    SpawnFailed(#[from] SpawnError),
    /// The server returned an error for the first request.
    #[error("the server returned an error for `{method}`: {source}")]
    Rejected {
        /// The method of the request.
        method: &'static str,
        /// The error.
        source: Box<RpcError>,
        /// The HTTP status of the response.
        status: Option<StatusCode>,
    },
    /// Client and server do not share a revision.
    #[error("no common revision: the server supports {}", list(.server))]
    NoCommonRevision {
        /// The revisions that the server supports.
        server: Vec<String>,
    },
    /// The response to the first request is invalid.
    #[error("the server's response to `{method}` is invalid: {reason}")]
    InvalidResponse {
        /// The method of the request.
        method: &'static str,
        /// The reason.
        reason: String,
    },
    /// No response arrived in time.
    #[error("the server did not respond to `{method}` within {limit:?}")]
    TimedOut {
        /// The method of the request.
        method: &'static str,
        /// The timeout.
        limit: Duration,
    },
}

/// A call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server returned an error.
    #[error("`{method}` returned an error: {source}")]
    Rejected {
        /// The method of the request.
        method: &'static str,
        /// The error.
        source: Box<RpcError>,
        /// The HTTP status of the response.
        status: Option<StatusCode>,
        /// The delay after which the server accepts another attempt.
        retry_after: Option<Duration>,
    },
    /// No response arrived in time; the request was cancelled.
    #[error("`{method}` got no response within {limit:?}")]
    TimedOut {
        /// The method of the request.
        method: &'static str,
        /// The timeout, counted from the last progress report or from the start.
        limit: Duration,
    },
    /// The connection broke. Unless the source says that nothing was sent, the call may have taken effect.
    #[error("connection lost during `{method}`: {source}")]
    Disconnected {
        /// The method of the request.
        method: &'static str,
        /// The transport error.
        source: TransportError,
    },
    /// The connection had ended before the call, which was not sent. Only [relayed](crate::Client::relay) calls fail
    /// with this error.
    #[error("`{method}` was not sent, because the connection has ended: {source}")]
    NotConnected {
        /// The method of the request.
        method: &'static str,
        /// The reason why the connection has ended.
        source: TransportError,
    },
    /// The response to a call was lost; the call may have taken effect.
    ///
    /// Only on HTTP with 2026-07-28, where a broken response stream cannot be resumed. Requests that are safe to repeat
    /// are sent again once, under a new id: lists, reads, completion, and calls of tools with the listed annotations
    /// `readOnlyHint` or `idempotentHint`. All other requests fail with this error. Check the state that the call was
    /// meant to change before you repeat it.
    #[error("the response to `{method}` was lost, and its effect is unknown: {source}")]
    EffectUnknown {
        /// The method of the request.
        method: &'static str,
        /// The transport error.
        source: TransportError,
    },
    /// The server requires authorization, and no credentials could be obtained. The call took no effect.
    #[error("`{method}` could not be authorized: {source}")]
    Authorization {
        /// The method of the request.
        method: &'static str,
        /// The step that failed, with a hint for the user.
        source: AuthorizationError,
    },
    /// The server sent a response that does not fit the request.
    #[error("the response to `{method}` is invalid: {reason}")]
    InvalidResponse {
        /// The method of the request.
        method: &'static str,
        /// The reason.
        reason: String,
    },
    /// The parameters cannot be serialized.
    #[error("`{method}` cannot be sent: {reason}")]
    Unsendable {
        /// The method of the request.
        method: &'static str,
        /// The reason.
        reason: String,
    },
    /// An argument must be sent in an `Mcp-Param-*` header, but its value cannot be encoded.
    #[error("the argument `{argument}` of `{tool}` cannot be sent: {source}")]
    UnsendableArgument {
        /// The name of the tool.
        tool: String,
        /// The path of the argument, joined by dots.
        argument: String,
        /// The reason.
        source: UnencodableArgument,
    },
    /// The output of a tool violates its output schema. The call took effect.
    #[error("the output of `{tool}` does not match its output schema: {reason}")]
    InvalidOutput {
        /// The name of the tool.
        tool: String,
        /// The violation, with its location and the expected value.
        reason: String,
        /// The output as received.
        output: Box<ToolOutput>,
    },
    /// The tool does not match its [pin](crate::ClientBuilder::pinned_tools), so it was not called.
    #[error("`{tool}` does not match its pin: {}", listed_suffix(.listed))]
    PinMismatch {
        /// The name of the tool.
        tool: String,
        /// The pinned digest.
        pinned: ToolDigest,
        /// The digest of the listed tool, if the server lists one.
        listed: Option<ToolDigest>,
    },
    /// The server did not advertise the capability that this call needs, so the request was not sent.
    #[error("the server does not advertise `{capability}`, which `{method}` requires")]
    CapabilityNotAdvertised {
        /// The method of the request.
        method: &'static str,
        /// The missing capability.
        capability: &'static str,
    },
    /// The negotiated revision does not define the method.
    #[error("revision {revision} has no `{method}`")]
    NotInRevision {
        /// The method of the request.
        method: &'static str,
        /// The negotiated revision.
        revision: Revision,
    },
    /// A paginated list does not end: a cursor was repeated, or the list exceeds the limits.
    #[error("the pages of `{method}` do not end: {reason}")]
    EndlessList {
        /// The method of the request.
        method: &'static str,
        /// The reason.
        reason: String,
    },
    /// The server requested input too often.
    #[error("`{method}` requested input more than {limit} times")]
    TooManyRoundTrips {
        /// The method of the request.
        method: &'static str,
        /// The maximum number of round trips.
        limit: usize,
    },
    /// The server requested input that the client could not provide.
    ///
    /// A user who declines is a valid response. This error means that no callback handles the input request, that the
    /// input request is invalid, or that the callback failed or rejected it.
    #[error("`{method}` requires input by `{input_method}`, which failed: {source}")]
    InputFailed {
        /// The method of the call.
        method: &'static str,
        /// The method of the input request.
        input_method: String,
        /// The error of the input request.
        source: Box<RpcError>,
    },
    /// The user declined to open a URL that the server requires.
    #[error("`{method}` requires the user to open a URL, which was declined")]
    UrlElicitationDeclined {
        /// The method of the request.
        method: &'static str,
    },
    /// The task of the call was cancelled.
    #[error("the task was cancelled{}", reason_suffix(.reason))]
    TaskCancelled {
        /// The status message of the server.
        reason: Option<String>,
    },
    /// The task of the call exceeded its lifetime.
    #[error("the task did not end within its lifetime of {lifetime:?}")]
    TaskExpired {
        /// The lifetime.
        lifetime: Duration,
    },
    /// The server requires input, and round trips are disabled.
    #[error("`{method}` requires input")]
    InputRequired {
        /// The method of the request.
        method: &'static str,
        /// The input requests.
        result: Box<turnbuckle_protocol::types::InputRequiredResult>,
    },
}

impl CallError {
    /// Returns the JSON-RPC error, if the server returned one.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rejected { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns whether the server has certainly not processed the request, so that another attempt cannot repeat its
    /// effect.
    ///
    /// `false` if that is unknown, and for the errors that the server itself returned.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Authorization { .. }
            | Self::NotConnected { .. }
            | Self::Unsendable { .. }
            | Self::UnsendableArgument { .. }
            | Self::PinMismatch { .. }
            | Self::CapabilityNotAdvertised { .. }
            | Self::NotInRevision { .. } => true,
            Self::Disconnected { source, .. } => match source {
                TransportError::Http(error) => error.is_unsent(),
                TransportError::SessionEnded => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the HTTP status of an error response.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Rejected { status, .. } => *status,
            Self::Disconnected {
                source: TransportError::ErrorResponse(error_response),
                ..
            } => Some(error_response.status),
            _ => None,
        }
    }

    /// Returns the delay that the server requested before another attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => *retry_after,
            Self::Disconnected {
                source: TransportError::ErrorResponse(error_response),
                ..
            } => error_response.retry_after,
            _ => None,
        }
    }

    /// Creates the error of a call after its connection failed.
    pub(crate) fn disconnected(method: &'static str, source: TransportError) -> Self {
        match source {
            TransportError::Authorization(source) => Self::Authorization { method, source },
            source => Self::Disconnected { method, source },
        }
    }

    pub(crate) fn rejected(
        method: &'static str,
        source: RpcError,
        http: Option<HttpMetadata>,
    ) -> Self {
        Self::Rejected {
            method,
            source: Box::new(source),
            status: http.as_ref().map(|metadata| metadata.status),
            retry_after: http.and_then(|metadata| metadata.retry_after),
        }
    }
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Authorization(failure) => Self::Authorization(failure),
            error => Self::Unreachable(error),
        }
    }
}

/// A transport failed.
///
/// Cheap to clone: every pending call gets the same error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The client was closed.
    #[error("the client was closed")]
    ClientClosed,
    /// The server was a child process, and has exited.
    #[error("{0}")]
    ProcessExited(Arc<ProcessExited>),
    /// The server frames messages with `Content-Length`, as the Language Server Protocol does. No MCP revision allows
    /// it.
    #[error("the server frames its messages with `Content-Length`, as language servers do")]
    LspFraming,
    /// Reading or writing failed.
    #[error("reading or writing failed: {0}")]
    Io(#[source] Arc<std::io::Error>),
    /// An HTTP request failed before a response was received.
    #[error(transparent)]
    Http(Arc<HttpError>),
    /// The server requires authorization, and no credentials could be obtained.
    #[error(transparent)]
    Authorization(AuthorizationError),
    /// The server returned an HTTP error without a JSON-RPC error.
    #[error("{0}")]
    ErrorResponse(Box<HttpErrorResponse>),
    /// The session has ended; a new one is required.
    #[error("the session has ended")]
    SessionEnded,
    /// A message exceeds the limit.
    #[error("the server sent more than {limit} bytes in one message")]
    MessageTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The server answered under an id of another JSON type, such as `"1"` for `1`.
    #[error("answered request {answered} ({}); {asked} ({}) was asked", .answered.type_name(), .asked.type_name())]
    WrongIdType {
        /// The id of the request.
        asked: RequestId,
        /// The id of the response.
        answered: RequestId,
    },
    /// The server wrote a message over several lines; on stdio, every message is one line.
    #[error(
        "the server wrote a JSON message over several lines; on stdio every message must be one line"
    )]
    MultilineMessage,
    /// The server sent an invalid response.
    #[error("invalid response: {reason}")]
    InvalidResponse {
        /// The reason.
        reason: String,
    },
}

impl TransportError {
    /// Returns whether the server closed the connection, as a process that exits does.
    pub(crate) fn is_server_gone(&self) -> bool {
        matches!(self, Self::Closed | Self::ProcessExited(_) | Self::Io(_))
    }
}

impl From<std::io::Error> for TransportError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<HttpError> for TransportError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TooLarge { limit } => Self::MessageTooLarge { limit },
            HttpError::Authorization(failure) => Self::Authorization(failure),
            error => Self::Http(Arc::new(error)),
        }
    }
}

/// An HTTP error response without a JSON-RPC error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("HTTP status {status}{}", excerpt_suffix(.excerpt))]
#[non_exhaustive]
pub struct HttpErrorResponse {
    /// The status.
    pub status: StatusCode,
    /// The delay before another attempt.
    pub retry_after: Option<Duration>,
    /// The `WWW-Authenticate` challenge.
    pub challenge: Option<String>,
    /// The beginning of the body.
    pub excerpt: String,
}

fn excerpt_suffix(excerpt: &str) -> String {
    match excerpt {
        "" => String::new(),
        _ => format!(": {excerpt}"),
    }
}

fn reason_suffix(reason: &Option<String>) -> String {
    match reason {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    }
}

fn listed_suffix(listed: &Option<ToolDigest>) -> String {
    match listed {
        Some(digest) => format!("its digest is {digest}"),
        None => "the server does not list it".to_owned(),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, io};

    use super::*;

    fn refused() -> TransportError {
        HttpError::Connect {
            origin: "http://a.example".to_owned(),
            source: io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused").into(),
        }
        .into()
    }

    fn page(status: StatusCode) -> TransportError {
        TransportError::ErrorResponse(Box::new(HttpErrorResponse {
            status,
            retry_after: None,
            challenge: None,
            excerpt: "go away".to_owned(),
        }))
    }

    #[test]
    fn only_a_request_that_was_not_processed_is_unsent() {
        let method = "tools/call";
        let disconnected = |source| CallError::disconnected(method, source);
        for unsent in [
            disconnected(refused()),
            disconnected(TransportError::SessionEnded),
            CallError::CapabilityNotAdvertised {
                method,
                capability: "tools",
            },
        ] {
            assert!(unsent.is_unsent(), "{unsent}");
        }
        let broken = HttpError::ConnectionBroken(io::Error::other("reset").into());
        for unknown in [
            disconnected(broken.into()),
            disconnected(TransportError::Closed),
            disconnected(page(StatusCode::BAD_GATEWAY)),
            CallError::rejected(method, RpcError::invalid_params("no"), None),
        ] {
            assert!(!unknown.is_unsent(), "{unknown}");
        }
    }

    #[test]
    fn the_text_of_an_error_contains_its_reason() {
        let method = "tools/call";
        let rejected = RpcError::invalid_params("unknown tool `rain`");
        let broken: TransportError = io::Error::other("broken pipe").into();
        let errors: [(Box<dyn Error>, &str); 6] = [
            (
                Box::new(CallError::rejected(method, rejected.clone(), None)),
                "`tools/call` returned an error: unknown tool `rain` (-32602)",
            ),
            (
                Box::new(CallError::disconnected(method, broken)),
                "connection lost during `tools/call`: reading or writing failed: broken pipe",
            ),
            (
                Box::new(CallError::disconnected(
                    method,
                    page(StatusCode::BAD_GATEWAY),
                )),
                "connection lost during `tools/call`: HTTP status 502 Bad Gateway: go away",
            ),
            (
                Box::new(ConnectError::from(refused())),
                "the server cannot be reached: could not connect to `http://a.example`: connection refused",
            ),
            (
                Box::new(ConnectError::Url(InvalidHttpUrl::Scheme)),
                "the URL is invalid: a URL must start with `http://` or `https://`",
            ),
            (
                Box::new(CallError::InputFailed {
                    method,
                    input_method: "roots/list".to_owned(),
                    source: Box::new(rejected),
                }),
                "`tools/call` requires input by `roots/list`, which failed: unknown tool `rain` (-32602)",
            ),
        ];
        for (error, expected) in errors {
            assert_eq!(error.to_string(), expected);
            // The sources are in the text already.
            assert_eq!(turnbuckle_text::error_chain(&*error), expected);
        }
    }
}
