//! Why a tool gave no result.

use std::{borrow::Cow, error::Error, fmt};

use turnbuckle_protocol::{RpcError, types::ClientCapabilities};

use crate::{handle::HandleError, input::AskError};

/// Why a tool gave no result.
///
/// Made with [`ToolError::new`], its message is for the model, so that it can go on. Any other error becomes a
/// `ToolError` by `?`: it is logged with an id, and the model gets only the id.
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
// It is no `std::error::Error` itself: that is what lets every such error become one.
#[derive(Debug)]
pub struct ToolError {
    pub(crate) kind: ToolErrorKind,
}

#[derive(Debug)]
pub(crate) enum ToolErrorKind {
    /// The model reads the message; the cause is logged.
    ForModel {
        message: Cow<'static, str>,
        cause: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Logged; the model gets an id.
    Internal(Box<dyn Error + Send + Sync>),
    /// The client does not offer what the tool asked it for.
    Undeclared(Box<ClientCapabilities>, String),
    /// The call itself was wrong.
    Protocol(RpcError),
}

impl ToolError {
    /// An error whose message the model reads.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: ToolErrorKind::ForModel {
                message: message.into(),
                cause: None,
            },
        }
    }

    /// An error that only the log shows; the model gets its id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: ToolErrorKind::Internal(error.into()),
        }
    }

    /// A JSON-RPC error instead of a tool result, for a call that the protocol forbids. Models seldom see these.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: ToolErrorKind::Protocol(error),
        }
    }

    /// Adds the cause, for the log only.
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
            ToolErrorKind::Undeclared(_, what) => f.write_str(what),
            ToolErrorKind::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        match error.downcast::<AskError>() {
            Ok(ask) => ask.into_tool_error(),
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
