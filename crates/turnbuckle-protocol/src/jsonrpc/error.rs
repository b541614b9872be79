//! The error object of an answer, and the codes in use.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::ReadError;

/// The codes that JSON-RPC and the protocol define.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but not a request, notification or answer.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown or its capability is not offered.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something failed that is not the caller's fault.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A resource does not exist, in revisions before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A URL must be visited first, in revision 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// An HTTP header is missing, malformed or contradicts the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version is not served here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The error of an answer: a code, a sentence, and perhaps data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// What kind of error it is, see [`code`].
    pub code: i64,
    /// One short sentence for people.
    pub message: String,
    /// What a program may want to know about it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub data: Option<Value>,
}

impl RpcError {
    /// Makes an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Attaches data; what cannot be written as JSON is left out.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = serde_json::to_value(data).ok();
        self
    }

    /// The bytes are not JSON.
    pub fn parse_error(message: impl Into<String>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// JSON, but not a message.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Nobody here answers this method.
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("method `{}` is not available", Excerpt(method));
        Self::new(code::METHOD_NOT_FOUND, message)
    }

    /// The parameters do not fit the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Something failed that is not the caller's fault.
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

/// Parameters that do not fit are -32602.
impl From<ReadError> for RpcError {
    fn from(error: ReadError) -> Self {
        Self::invalid_params(error.to_string())
    }
}

/// Shows the beginning of what a peer sent, so that an error stays small.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a>(pub &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 100;
        match self.0.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{}…", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

/// Keeps `"data": null` apart from no data, so that an error is passed on as it came.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
