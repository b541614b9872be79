//! The events that a program can observe: anomalies and traced messages.

use turnbuckle_protocol::{RequestId, RpcError, codec::headers::InvalidParamHeader};

use crate::tools::ToolDigest;

/// A tolerated protocol violation of the server, or a changed tool.
///
/// Every anomaly is also logged; [`on_anomaly`](crate::ClientBuilder::on_anomaly) reports it to a program.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Anomaly {
    /// Input that is not a JSON-RPC message, often text printed to stdout. Contains an excerpt.
    NotJson(String),
    /// Messages are framed with `Content-Length`, as in the Language Server Protocol.
    LspFraming,
    /// A line starts with a byte order mark, which JSON does not allow.
    ByteOrderMark,
    /// A response without a pending request.
    UnexpectedResponse(RequestId),
    /// A response with both a result and an error, or with neither.
    InvalidResponse(RpcError),
    /// An error response without an id.
    ErrorWithoutId(RpcError),
    /// Progress for an unknown token.
    UnknownProgressToken(RequestId),
    /// A request that the revision does not allow, or that exceeds the limit.
    DisallowedRequest {
        /// The method of the request.
        method: String,
    },
    /// A tool with an invalid `x-mcp-header`. It is left out of the list, because it cannot be called over HTTP.
    InvalidParamHeader {
        /// The name of the tool.
        tool: String,
        /// The violation.
        error: InvalidParamHeader,
    },
    /// A malformed item of a list. It is left out, and the other items are returned.
    InvalidListItem {
        /// The kind of the item.
        kind: ListItemKind,
        /// The name or URI of the item; without one its position, such as `tools[2]`.
        name: String,
        /// The violation.
        error: String,
    },
    /// A tool that differs from its previous listing, so an earlier approval does not apply to it;
    /// [`pinned_tools`](crate::ClientBuilder::pinned_tools) rejects its calls.
    ToolChanged {
        /// The name of the tool.
        tool: String,
        /// The digest of the previous listing.
        before: ToolDigest,
        /// The digest of the current listing.
        now: ToolDigest,
        /// The members that were added, removed or changed, such as `description` or `inputSchema`.
        members: Vec<&'static str>,
    },
    /// A notification with invalid parameters.
    InvalidNotification {
        /// The method of the notification.
        method: String,
        /// The reason.
        error: String,
    },
}

impl Anomaly {
    /// Returns the id of the violated rule, for recordings.
    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "message.not-json",
            Self::LspFraming => "message.lsp-framing",
            Self::ByteOrderMark => "message.byte-order-mark",
            Self::UnexpectedResponse(_) => "response.unexpected",
            Self::InvalidResponse(_) => "response.invalid",
            Self::ErrorWithoutId(_) => "response.error-without-id",
            Self::UnknownProgressToken(_) => "progress.unknown-token",
            Self::DisallowedRequest { .. } => "request.disallowed",
            Self::InvalidParamHeader { .. } => "tool.invalid-param-header",
            Self::InvalidListItem { .. } => "list.invalid-item",
            Self::ToolChanged { .. } => "tool.changed",
            Self::InvalidNotification { .. } => "notification.invalid",
        }
    }

    /// Maximum length of an excerpt.
    const MAX_EXCERPT_CHARS: usize = 200;

    /// Creates the anomaly with an excerpt of the input.
    pub(crate) fn not_json(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * Self::MAX_EXCERPT_CHARS)]);
        Self::NotJson(text.chars().take(Self::MAX_EXCERPT_CHARS).collect())
    }
}

impl std::fmt::Display for Anomaly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson(text) => write!(f, "not a JSON-RPC message: {text:?}"),
            Self::LspFraming => {
                f.write_str("messages framed with `Content-Length`, as language servers do")
            }
            Self::ByteOrderMark => f.write_str("a byte order mark before a message"),
            Self::UnexpectedResponse(id) => {
                write!(f, "a response to request {id}, which is not pending")
            }
            Self::InvalidResponse(error) => write!(f, "an invalid response: {error}"),
            Self::ErrorWithoutId(error) => write!(f, "an error response without an id: {error}"),
            Self::UnknownProgressToken(token) => {
                write!(f, "progress for unknown token {token}")
            }
            Self::DisallowedRequest { method } => {
                write!(f, "a request `{method}` that is not allowed")
            }
            Self::InvalidParamHeader { tool, error } => {
                write!(f, "tool `{tool}` was left out: {error}")
            }
            Self::InvalidListItem { kind, name, error } => {
                write!(f, "{kind} `{name}` was left out: {error}")
            }
            Self::ToolChanged { tool, members, .. } => {
                let members = members.join(", ");
                write!(
                    f,
                    "tool `{tool}` has changed since it was listed: {members}"
                )
            }
            Self::InvalidNotification { method, error } => {
                write!(
                    f,
                    "a notification `{method}` with invalid parameters: {error}"
                )
            }
        }
    }
}

/// The kind of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListItemKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    ResourceTemplate,
    /// A prompt.
    Prompt,
}

impl std::fmt::Display for ListItemKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
            Self::Prompt => "prompt",
        })
    }
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// One message that was sent or received.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TracedMessage<'a> {
    /// The direction.
    pub direction: MessageDirection,
    /// The message as sent over the transport; not necessarily JSON, if the server sent something else.
    pub message: &'a str,
}
