//! Errors of prompts, resources and extension methods.

use std::{borrow::Cow, error::Error, fmt};

use serde_json::json;
use turnbuckle_protocol::RpcError;

use crate::{
    handle::HandleError, input::ClientRequestError, lifecycle::RevisionRules, request::incident,
};

/// The error of a prompt, resource or extension method. The client gets a protocol error.
///
/// `?` converts any other error: it is logged under an incident id, and the client gets only the id.
// Does not implement `std::error::Error`, which allows the conversion from every such error.
#[derive(Debug)]
pub struct RequestError {
    kind: RequestErrorKind,
}

#[derive(Debug)]
enum RequestErrorKind {
    NotFound,
    Invalid(Cow<'static, str>),
    ClientRequest(Box<ClientRequestError>),
    Internal(Box<dyn Error + Send + Sync>),
    Protocol(RpcError),
}

impl RequestError {
    /// The resource does not exist.
    pub fn not_found() -> Self {
        Self {
            kind: RequestErrorKind::NotFound,
        }
    }

    /// The parameters of the request are invalid.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: RequestErrorKind::Invalid(message.into()),
        }
    }

    /// An internal error. It is logged, and the client gets its incident id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: RequestErrorKind::Internal(error.into()),
        }
    }

    /// A custom JSON-RPC error.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: RequestErrorKind::Protocol(error),
        }
    }

    /// Converts to the protocol error. `subject` is the requested URI or name.
    pub(crate) fn into_rpc_error(self, rules: &RevisionRules, subject: &str) -> RpcError {
        match self.kind {
            RequestErrorKind::NotFound => not_found(rules, subject),
            RequestErrorKind::Invalid(message) => RpcError::invalid_params(message),
            RequestErrorKind::ClientRequest(error) => error.into_rpc_error(rules),
            RequestErrorKind::Internal(error) => {
                incident::internal(&incident::report(subject, &*error))
            }
            RequestErrorKind::Protocol(error) => error,
        }
    }
}

/// The error for a resource that does not exist.
pub(crate) fn not_found(rules: &RevisionRules, uri: &str) -> RpcError {
    RpcError::new(rules.resource_not_found, "resource not found").with_data(json!({ "uri": uri }))
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            RequestErrorKind::NotFound => f.write_str("not found"),
            RequestErrorKind::Invalid(message) => f.write_str(message),
            RequestErrorKind::ClientRequest(error) => error.fmt(f),
            RequestErrorKind::Internal(error) => error.fmt(f),
            RequestErrorKind::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for RequestError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let kind = match error.downcast::<ClientRequestError>() {
            Ok(error) => RequestErrorKind::ClientRequest(error),
            Err(error) => match error.downcast::<HandleError>() {
                Ok(handle) => return handle.into_request_error(),
                Err(error) => RequestErrorKind::Internal(error),
            },
        };
        Self { kind }
    }
}
