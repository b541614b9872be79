//! The error of a tool.

use std::{borrow::Cow, error::Error, fmt};

use turnbuckle_protocol::{RpcError, types::CallToolResult};

use crate::{
    RequestError,
    lifecycle::RevisionRules,
    request::error::{HandlerErrorKind, report_incident},
};

/// The error of a tool.
///
/// The message of [`ToolError::new`] is for the model. `?` converts any other error: it is logged under an incident id,
/// and the model gets only the id. A [`RequestError`] converts too: the model gets its message.
///
/// ```
/// use turnbuckle_server::ToolError;
///
/// async fn divide(dividend: f64, divisor: f64) -> Result<f64, ToolError> {
///     if divisor == 0.0 {
///         return Err(ToolError::new("`divisor` must not be 0"));
///     }
///     std::fs::read("ledger.bin")?; // an I/O error is not the model's business
///     Ok(dividend / divisor)
/// }
/// ```
// Does not implement `std::error::Error`, which allows the conversion from every such error.
#[derive(Debug)]
pub struct ToolError {
    pub(crate) kind: HandlerErrorKind,
}

impl ToolError {
    /// Creates an error with a message for the model.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: HandlerErrorKind::message(message),
        }
    }

    /// Creates an internal error. It is logged, and the model gets its incident id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: HandlerErrorKind::Internal(error.into()),
        }
    }

    /// Creates a JSON-RPC error instead of a tool result, for a call that the protocol forbids. Models rarely see
    /// these.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: HandlerErrorKind::Protocol(error),
        }
    }

    /// Adds a cause, for the log.
    #[must_use]
    pub fn caused_by(mut self, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        if let HandlerErrorKind::Message { cause, .. } = &mut self.kind {
            *cause = Some(error.into());
        }
        self
    }

    /// Converts to the result for the model, or to the protocol error where one is required. `name` is that of the tool.
    pub(crate) fn into_tool_result(
        self,
        rules: &RevisionRules,
        name: &str,
    ) -> Result<CallToolResult, RpcError> {
        match self.kind {
            HandlerErrorKind::Message { message, cause } => {
                if let Some(cause) = cause {
                    tracing::warn!(tool = name, %cause, "{message}");
                }
                Ok(CallToolResult::error(message))
            }
            HandlerErrorKind::NotFound => Ok(CallToolResult::error("not found")),
            HandlerErrorKind::ClientRequest(error) if error.is_rpc_error(rules) => {
                Err(error.into_rpc_error(rules))
            }
            // With the reason, the model may choose another approach.
            HandlerErrorKind::ClientRequest(error) => Ok(CallToolResult::error(error.to_string())),
            HandlerErrorKind::Internal(error) => Ok(internal_failure(name, &*error)),
            HandlerErrorKind::Protocol(error) => Err(error),
        }
    }
}

/// Logs an internal error of a tool, and returns the result with its incident id.
pub(crate) fn internal_failure(name: &str, error: &(dyn Error + 'static)) -> CallToolResult {
    let id = report_incident(name, error);
    CallToolResult::error(format!(
        "`{name}` failed; see the server's log for incident {id}"
    ))
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self { kind: error.into() }
    }
}

impl From<RequestError> for ToolError {
    fn from(error: RequestError) -> Self {
        Self { kind: error.kind }
    }
}
