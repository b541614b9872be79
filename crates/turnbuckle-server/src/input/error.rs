//! Errors of client requests.

use serde_json::Value;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::code,
    types::{ClientCapabilities, ElicitUrlParams},
};

use super::url_elicitation;
use crate::lifecycle::RevisionRules;

/// The reason that a client request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The client did not declare the required capability. Nothing was sent.
    #[error("the client does not support {}", describe(required))]
    MissingCapability {
        /// The required capability.
        required: Box<ClientCapabilities>,
    },
    /// The client responded with an error.
    #[error("the client responded to `{method}` with an error: {error}")]
    Rejected {
        /// The method of the request.
        method: &'static str,
        /// The client's error.
        error: Box<RpcError>,
    },
    /// The client did not respond in time. The request was cancelled.
    #[error("the client did not respond to `{method}` in time")]
    TimedOut {
        /// The method of the request.
        method: &'static str,
    },
    /// The connection, session or call ended before the response.
    #[error("the call ended before the client responded to `{method}`")]
    CallEnded {
        /// The method of the request.
        method: &'static str,
    },
    /// The response does not match the request.
    #[error("the response to `{key}` is invalid: {reason}")]
    InvalidResponse {
        /// The key of the request.
        key: String,
        /// The problem.
        reason: String,
    },
    /// Another request of this call has the same key.
    #[error("duplicate key `{key}`: every client request of a call needs its own key")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// The client has not sent `notifications/initialized`; requests to it are not allowed before that.
    #[error("`{method}` cannot be sent before the client has sent `notifications/initialized`")]
    NotInitialized {
        /// The method of the request.
        method: &'static str,
    },
    /// The request is invalid.
    #[error("the client request is invalid: {reason}")]
    InvalidRequest {
        /// The problem.
        reason: String,
    },
    /// The user must complete URL elicitations first. The client presents them and retries the call.
    #[error("the user must open {} first", join_urls(elicitations))]
    UrlElicitationRequired {
        /// The required elicitations.
        elicitations: Vec<ElicitUrlParams>,
    },
    /// The user declined a required URL elicitation.
    #[error("the user declined the URL elicitation `{key}`")]
    UrlElicitationDeclined {
        /// The key of the request.
        key: String,
    },
    /// The client cannot be asked during this kind of request.
    #[error("`{method}` cannot be sent during this kind of request")]
    Unavailable {
        /// The method of the request.
        method: &'static str,
    },
}

impl ClientRequestError {
    /// Returns whether even a tool, which can fail with a result, fails with a protocol error.
    pub(crate) fn is_rpc_error(&self, rules: &RevisionRules) -> bool {
        match self {
            Self::MissingCapability { .. } => rules.missing_capability_is_rpc_error,
            Self::UrlElicitationRequired { .. } => true,
            _ => false,
        }
    }

    /// Converts to a protocol error, for handlers without another way to fail.
    pub(crate) fn into_rpc_error(self, rules: &RevisionRules) -> RpcError {
        match self {
            Self::MissingCapability { ref required } => {
                missing_capability(rules, required, &self.to_string())
            }
            Self::UrlElicitationRequired { .. } => self.into_url_elicitation_error(),
            other => RpcError::internal(other.to_string()),
        }
    }

    /// Only created for revisions that define this error.
    fn into_url_elicitation_error(self) -> RpcError {
        let message = self.to_string();
        match self {
            Self::UrlElicitationRequired { elicitations } => {
                url_elicitation::required(elicitations, message)
            }
            _ => RpcError::internal(message),
        }
    }
}

fn join_urls(elicitations: &[ElicitUrlParams]) -> String {
    let urls: Vec<_> = elicitations
        .iter()
        .map(|elicitation| &*elicitation.url)
        .collect();
    urls.join(", ")
}

/// The protocol error for a missing client capability.
pub(crate) fn missing_capability(
    rules: &RevisionRules,
    required: &ClientCapabilities,
    message: &str,
) -> RpcError {
    if rules.missing_capability_is_rpc_error {
        RpcError::new(code::MISSING_CAPABILITY, message)
            .with_data(serde_json::json!({ "requiredCapabilities": required }))
    } else {
        RpcError::internal(message)
    }
}

/// Names the capabilities, including required sub-capabilities.
fn describe(required: &ClientCapabilities) -> String {
    let Ok(Value::Object(members)) = serde_json::to_value(required) else {
        return "a required capability".to_owned();
    };
    let names = members.iter().flat_map(|(name, parts)| match parts {
        Value::Object(parts) if !parts.is_empty() => {
            let parts = parts.keys().map(|part| format!("`{name}.{part}`"));
            parts.collect::<Vec<_>>()
        }
        _ => vec![format!("`{name}`")],
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use turnbuckle_protocol::types::ElicitationCapability;

    use super::*;

    fn message(elicitation: ElicitationCapability) -> String {
        let required = Box::new(ClientCapabilities::new().elicitation(elicitation));
        ClientRequestError::MissingCapability { required }.to_string()
    }

    #[test]
    fn a_client_that_lacks_a_part_of_a_capability_learns_which() {
        let forms = ElicitationCapability::default();
        assert_eq!(
            message(forms.clone()),
            "the client does not support `elicitation`"
        );
        assert_eq!(
            message(forms.url(Map::new())),
            "the client does not support `elicitation.url`"
        );
    }
}
