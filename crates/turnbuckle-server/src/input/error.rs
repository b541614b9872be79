//! Why a question got no answer.

use serde_json::Value;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::code,
    types::{ClientCapabilities, ElicitUrlParams},
};

use super::visits;
use crate::{
    lifecycle::Rules,
    tools::{ToolError, ToolErrorKind},
};

/// Why a question to the client got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not say that it can be asked this. Nothing was sent.
    #[error("the client does not offer {}", describe(needed))]
    Undeclared {
        /// What it would have to offer.
        needed: Box<ClientCapabilities>,
    },
    /// The client answered with an error.
    #[error("the client refused `{method}`: {error}")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// What it said.
        error: Box<RpcError>,
    },
    /// The client did not answer in time; the question was taken back.
    #[error("the client did not answer `{method}` in time")]
    TimedOut {
        /// What it was asked.
        method: &'static str,
    },
    /// The connection or session ended before the answer came.
    #[error("the client went away before it answered `{method}`")]
    Gone {
        /// What it was asked.
        method: &'static str,
    },
    /// The answer does not fit the question.
    #[error("the answer to `{key}` does not fit: {reason}")]
    BadAnswer {
        /// The key of the question.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another question of this call has the same key.
    #[error("`{key}` was asked before in this call; every question needs a key of its own")]
    Repeated {
        /// The key.
        key: String,
    },
    /// The client has not finished its handshake; until then it may not be asked.
    #[error("`{method}` cannot be asked before the client has sent `notifications/initialized`")]
    TooEarly {
        /// What was to be asked.
        method: &'static str,
    },
    /// The question cannot be put into the words of the protocol.
    #[error("the question cannot be asked: {reason}")]
    Unaskable {
        /// What is wrong with it.
        reason: String,
    },
    /// The user has to visit web pages before the call can be done; the client shows them and calls again.
    #[error("the user has to visit {} first", addresses(visits))]
    VisitFirst {
        /// Where the user has to go.
        visits: Vec<ElicitUrlParams>,
    },
    /// The user did not agree to visit a web page that the call needs.
    #[error("the user did not agree to the visit `{key}`")]
    Unvisited {
        /// The key of the question.
        key: String,
    },
    /// This kind of request gives no opportunity to ask.
    #[error("`{method}` cannot be asked while answering this request")]
    Unreachable {
        /// What was to be asked.
        method: &'static str,
    },
}

impl AskError {
    pub(crate) fn into_tool_error(self) -> ToolError {
        match self {
            Self::Undeclared { ref needed } => {
                ToolErrorKind::Undeclared(needed.clone(), self.to_string()).into()
            }
            Self::VisitFirst { .. } => ToolError::protocol(self.into_visit_error()),
            // The model may find another way when it knows that the user or the client said no.
            other => ToolError::new(other.to_string()),
        }
    }

    /// The protocol error for handlers that have no other way to fail.
    pub(crate) fn into_rpc_error(self, rules: &Rules) -> RpcError {
        match self {
            Self::Undeclared { ref needed } => undeclared(rules, needed, &self.to_string()),
            Self::VisitFirst { .. } => self.into_visit_error(),
            other => RpcError::internal(other.to_string()),
        }
    }

    /// Made only for clients whose revision has this error.
    fn into_visit_error(self) -> RpcError {
        let message = self.to_string();
        match self {
            Self::VisitFirst { visits } => visits::required(visits, message),
            _ => RpcError::internal(message),
        }
    }
}

fn addresses(visits: &[ElicitUrlParams]) -> String {
    let urls: Vec<_> = visits.iter().map(|visit| &*visit.url).collect();
    urls.join(", ")
}

/// The protocol error for a client that lacks a capability.
pub(crate) fn undeclared(rules: &Rules, needed: &ClientCapabilities, message: &str) -> RpcError {
    if rules.undeclared_is_error {
        RpcError::new(code::MISSING_CAPABILITY, message)
            .with_data(serde_json::json!({ "requiredCapabilities": needed }))
    } else {
        RpcError::internal(message)
    }
}

/// Names capabilities; of one that has parts, the parts that are needed.
fn describe(needed: &ClientCapabilities) -> String {
    let Ok(Value::Object(members)) = serde_json::to_value(needed) else {
        return "what the handler needs".to_owned();
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
        let needed = Box::new(ClientCapabilities::new().elicitation(elicitation));
        AskError::Undeclared { needed }.to_string()
    }

    #[test]
    fn a_client_that_lacks_a_part_of_a_capability_learns_which() {
        let forms = ElicitationCapability::default();
        assert_eq!(
            message(forms.clone()),
            "the client does not offer `elicitation`"
        );
        assert_eq!(
            message(forms.url(Map::new())),
            "the client does not offer `elicitation.url`"
        );
    }
}
