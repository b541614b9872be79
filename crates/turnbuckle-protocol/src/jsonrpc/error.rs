//! The error object of a response, and its codes.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::JsonError;

/// The codes that JSON-RPC and the protocol define.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but not a request, notification or response.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown or its capability is not advertised.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not match the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// An error that the caller did not cause.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A resource does not exist, in revisions before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A URL elicitation is required first, in revision 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// An HTTP header is missing, malformed or contradicts the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The error of a response: a code, a message, and optional data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The error code, see [`code`].
    pub code: i64,
    /// A short message for people.
    pub message: String,
    /// Additional data for programs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Attaches data; values that cannot be serialized are omitted.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = serde_json::to_value(data).ok();
        self
    }

    /// Creates a -32700 error: the bytes are not JSON.
    pub fn parse_error(message: impl Into<String>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// Creates a -32600 error: JSON, but not a valid message.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Creates a -32601 error: the method is not available.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("method `{}` is not available", Truncated(method));
        Self::new(code::METHOD_NOT_FOUND, message)
    }

    /// Creates a -32602 error: the parameters do not match the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Creates a -32603 error: a failure that the caller did not cause.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// Deserialization errors of parameters are -32602.
impl From<JsonError> for RpcError {
    fn from(error: JsonError) -> Self {
        Self::invalid_params(error.to_string())
    }
}

/// Displays the first characters of a text from a peer, so that errors stay small.
#[derive(Clone, Copy, Debug)]
pub struct Truncated<'a>(pub &'a str);

impl fmt::Display for Truncated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 100;
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{}…", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

/// Distinguishes `"data": null` from absent data, so that an error is forwarded unchanged.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
