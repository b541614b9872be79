//! Errors of handlers: what both error types can hold, the error of prompts, resources and extension methods, and the
//! conversion of any other error to an internal one.
//!
//! Internal failures are incidents: they are logged under an id, and the peer gets only the id.

use std::{any::Any, borrow::Cow, error::Error, fmt};

use serde_json::json;
use turnbuckle_protocol::RpcError;

use crate::{ToolError, handle::HandleError, input::ClientRequestError, lifecycle::RevisionRules};

/// The content of [`RequestError`] and [`ToolError`]. They differ only in what the peer receives.
#[derive(Debug)]
pub(crate) enum HandlerErrorKind {
    /// For the peer; the cause is logged.
    Message {
        message: Cow<'static, str>,
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The resource does not exist.
    NotFound,
    /// A client request failed.
    ClientRequest(Box<ClientRequestError>),
    /// Logged; the peer gets the incident id.
    Internal(Box<dyn Error + Send + Sync>),
    /// A JSON-RPC error.
    Protocol(RpcError),
}

impl HandlerErrorKind {
    pub(crate) fn message(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Message {
            message: message.into(),
            cause: None,
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerErrorKind {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let error = match error.downcast::<ClientRequestError>() {
            Ok(error) => return Self::ClientRequest(error),
            Err(error) => error,
        };
        let error = match error.downcast::<HandleError>() {
            Ok(error) => return error.into_error_kind(),
            Err(error) => error,
        };
        match error.downcast::<InternalError>() {
            Ok(error) => Self::Internal(error.0),
            Err(error) => Self::Internal(error),
        }
    }
}

impl fmt::Display for HandlerErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { message, .. } => f.write_str(message),
            Self::NotFound => f.write_str("not found"),
            Self::ClientRequest(error) => error.fmt(f),
            Self::Internal(error) => error.fmt(f),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

/// The error of a prompt, resource or extension method. The client gets a protocol error.
///
/// `?` converts any other error: it is logged under an incident id, and the client gets only the id. A [`ToolError`]
/// converts too: the client gets its message as that of [`invalid`](Self::invalid).
// Does not implement `std::error::Error`, which allows the conversion from every such error.
#[derive(Debug)]
pub struct RequestError {
    pub(crate) kind: HandlerErrorKind,
}

impl RequestError {
    /// The resource does not exist.
    pub fn not_found() -> Self {
        Self {
            kind: HandlerErrorKind::NotFound,
        }
    }

    /// The parameters of the request are invalid.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: HandlerErrorKind::message(message),
        }
    }

    /// An internal error. It is logged, and the client gets its incident id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: HandlerErrorKind::Internal(error.into()),
        }
    }

    /// A custom JSON-RPC error.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: HandlerErrorKind::Protocol(error),
        }
    }

    /// Converts to the protocol error. `subject` is the requested URI or name.
    pub(crate) fn into_rpc_error(self, rules: &RevisionRules, subject: &str) -> RpcError {
        match self.kind {
            HandlerErrorKind::Message { message, cause } => {
                if let Some(cause) = cause {
                    tracing::warn!(subject, %cause, "{message}");
                }
                RpcError::invalid_params(message)
            }
            HandlerErrorKind::NotFound => not_found(rules, subject),
            HandlerErrorKind::ClientRequest(error) => error.into_rpc_error(rules),
            HandlerErrorKind::Internal(error) => incident_error(&report_incident(subject, &*error)),
            HandlerErrorKind::Protocol(error) => error,
        }
    }
}

/// The error for a resource that does not exist.
pub(crate) fn not_found(rules: &RevisionRules, uri: &str) -> RpcError {
    RpcError::new(rules.resource_not_found, "resource not found").with_data(json!({ "uri": uri }))
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for RequestError {
    fn from(error: E) -> Self {
        Self { kind: error.into() }
    }
}

impl From<ToolError> for RequestError {
    fn from(error: ToolError) -> Self {
        Self { kind: error.kind }
    }
}

/// Converts the error of a `Result` to an internal error, for types that `?` does not convert by itself.
///
/// These are the types that convert into a boxed error without implementing [`Error`], such as `anyhow::Error` and
/// `Box<dyn Error + Send + Sync>`. The result works in every handler: it converts to both [`ToolError`] and
/// [`RequestError`].
///
/// ```
/// use std::error::Error;
/// use turnbuckle_server::{ResultExt as _, ToolError};
///
/// fn open_ledger() -> Result<String, Box<dyn Error + Send + Sync>> {
///     Ok("ledger".to_owned())
/// }
///
/// async fn book() -> Result<String, ToolError> {
///     let ledger = open_ledger().internal()?;
///     Ok(format!("booked in {ledger}"))
/// }
/// ```
pub trait ResultExt<T> {
    /// Converts the error to an internal error. It is logged, and the peer gets its incident id.
    fn internal(self) -> Result<T, InternalError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> ResultExt<T> for Result<T, E> {
    fn internal(self) -> Result<T, InternalError> {
        self.map_err(|error| InternalError(error.into()))
    }
}

/// An error that is logged. The peer gets its incident id. See [`ResultExt`].
#[derive(Debug)]
pub struct InternalError(Box<dyn Error + Send + Sync>);

impl fmt::Display for InternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for InternalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Logs a failure with its causes and returns its incident id.
pub(crate) fn report_incident(operation: &str, error: &(dyn Error + 'static)) -> String {
    let id = new_incident_id();
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push_str(": ");
        causes.push_str(&cause.to_string());
        source = cause.source();
    }
    tracing::error!(incident = %id, "{operation} failed: {error}{causes}");
    id
}

/// Logs a panic of a handler and returns the error for the peer.
pub(crate) fn report_panic(panic: &(dyn Any + Send)) -> RpcError {
    let id = new_incident_id();
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(incident = %id, "a handler panicked: {message}");
    incident_error(&id)
}

/// Returns an internal error that contains only the incident id.
pub(crate) fn incident_error(id: &str) -> RpcError {
    RpcError::internal(format!("internal error, incident {id}"))
}

fn new_incident_id() -> String {
    let mut bytes = [0; 6];
    // Without randomness the incident is still logged, but its id is not unique.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
