//! Why a prompt or a resource was not given.

use std::{borrow::Cow, error::Error, fmt};

use serde_json::json;
use turnbuckle_protocol::RpcError;

use crate::{handle::HandleError, incident, input::AskError, lifecycle::Rules};

/// Why a prompt or a resource was not given: always a protocol error, which the client sees.
///
/// Any other error becomes one by `?`: it is logged with an id, and the client gets only the id.
// It is no `std::error::Error` itself: that is what lets every such error become one.
#[derive(Debug)]
pub struct RequestError {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    NotFound,
    Invalid(Cow<'static, str>),
    Ask(Box<AskError>),
    Internal(Box<dyn Error + Send + Sync>),
    Protocol(RpcError),
}

impl RequestError {
    /// There is no such resource.
    pub fn not_found() -> Self {
        Self {
            kind: Kind::NotFound,
        }
    }

    /// The request's parameters are wrong, as the message says.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: Kind::Invalid(message.into()),
        }
    }

    /// An error that only the log shows; the client gets its id.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: Kind::Internal(error.into()),
        }
    }

    /// A JSON-RPC error of your own.
    pub fn protocol(error: RpcError) -> Self {
        Self {
            kind: Kind::Protocol(error),
        }
    }

    /// The error on the wire; `subject` is the URI or the name that was asked for.
    pub(crate) fn into_rpc_error(self, rules: &Rules, subject: &str) -> RpcError {
        match self.kind {
            Kind::NotFound => not_found(rules, subject),
            Kind::Invalid(message) => RpcError::invalid_params(message),
            Kind::Ask(error) => error.into_rpc_error(rules),
            Kind::Internal(error) => incident::internal(&incident::report(subject, &*error)),
            Kind::Protocol(error) => error,
        }
    }
}

/// The error for a resource that does not exist.
pub(crate) fn not_found(rules: &Rules, uri: &str) -> RpcError {
    RpcError::new(rules.resource_not_found, "resource not found").with_data(json!({ "uri": uri }))
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::NotFound => f.write_str("not found"),
            Kind::Invalid(message) => f.write_str(message),
            Kind::Ask(error) => error.fmt(f),
            Kind::Internal(error) => error.fmt(f),
            Kind::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for RequestError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let kind = match error.downcast::<AskError>() {
            Ok(error) => Kind::Ask(error),
            Err(error) => match error.downcast::<HandleError>() {
                Ok(handle) => return handle.into_request_error(),
                Err(error) => Kind::Internal(error),
            },
        };
        Self { kind }
    }
}
