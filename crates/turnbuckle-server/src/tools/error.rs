//! The error of a tool.

use std::{borrow::Cow, error::Error, fmt};

use turnbuckle_protocol::{RpcError, types::ClientCapabilities};

use crate::{handle::HandleError, input::ClientRequestError};

/// The error of a tool.
///
/// The message of [`ToolError::new`] is for the model. `?` converts any other error: it is logged under an incident id,
/// and the model gets only the id.
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
    pub(crate) kind: ToolErrorKind,
}

#[derive(Debug)]
pub(crate) enum ToolErrorKind {
    /// For the model; the cause is logged.
    ForModel {
        message: Cow<'static, str>,
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Logged; the model gets the incident id.
    Internal(Box<dyn Error + Send + Sync>),
    /// The client lacks a required capability.
    MissingCapability(Box<ClientCapabilities>, String),
    /// The call is invalid.
    Protocol(RpcError),
}

impl ToolError {
    /// Creates an error with a message for the model.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ToolErrorKind::ForModel {
                message: message.into(),
                cause: None,
            },
        }
    }

    /// Creates an internal error. It is logged, and the model gets its incident id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: ToolErrorKind::Internal(error.into()),
        }
    }

    /// Creates a JSON-RPC error instead of a tool result, for a call that the protocol forbids. Models rarely see
    /// these.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: ToolErrorKind::Protocol(error),
        }
    }

    /// Adds a cause, for the log.
    #[must_use]
    pub fn caused_by(mut self, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        if let ToolErrorKind::ForModel { cause, .. } = &mut self.kind {
            *cause = Some(error.into());
        }
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ToolErrorKind::ForModel { message, .. } => f.write_str(message),
            ToolErrorKind::Internal(error) => error.fmt(f),
            ToolErrorKind::MissingCapability(_, what) => f.write_str(what),
            ToolErrorKind::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        match error.downcast::<ClientRequestError>() {
            Ok(request) => request.into_tool_error(),
            Err(error) => match error.downcast::<HandleError>() {
                Ok(handle) => handle.into_tool_error(),
                Err(error) => ToolErrorKind::Internal(error).into(),
            },
        }
    }
}

impl From<ToolErrorKind> for ToolError {
    fn from(kind: ToolErrorKind) -> Self {
        Self { kind }
    }
}
