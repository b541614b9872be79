//! What is odd about a server, but handled.

use turnbuckle_protocol::codec::headers::BadMark;
use turnbuckle_protocol::{RequestId, RpcError};

use crate::tools::ToolDigest;

/// Something that a server should not have done, or that somebody should know of, and that was tolerated.
///
/// Every oddity is also logged; [`on_oddity`](crate::ClientBuilder::on_oddity) brings it to a program.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Oddity {
    /// Something that is no message; on stdio often a stray print. The beginning of it.
    Noise(String),
    /// Messages are framed as language servers do it, with `Content-Length`.
    LspFraming,
    /// A line begins with a byte order mark, which JSON does not have.
    ByteOrderMark,
    /// An answer to a request that was never made, or is over.
    AnswerForNobody(RequestId),
    /// An answer that is none: it has both a result and an error, or neither.
    InvalidAnswer(RpcError),
    /// A complaint that names no request.
    Complaint(RpcError),
    /// Progress of a request that is not open, or that never asked for it.
    ForeignProgress(RequestId),
    /// A request that servers of this revision must not make, or one too many.
    UnwelcomeRequest {
        /// Its method.
        method: String,
    },
    /// A tool whose input schema marks headers wrongly. It is left out of the list, as it cannot be called on HTTP.
    BadMark {
        /// Its name.
        tool: String,
        /// What is wrong with the mark.
        error: BadMark,
    },
    /// A tool that was listed in another way than before. Who approved of it approved of something else;
    /// [`pinned_tools`](crate::ClientBuilder::pinned_tools) has it refused.
    ToolChanged {
        /// Its name.
        tool: String,
        /// The digest of what was listed before.
        before: ToolDigest,
        /// The digest of what is listed now.
        now: ToolDigest,
        /// The members that came, went or changed, such as `description` or `inputSchema`.
        members: Vec<&'static str>,
    },
    /// A notification whose parameters do not fit.
    InvalidNotification {
        /// Its method.
        method: String,
        /// What is wrong.
        error: String,
    },
}

impl Oddity {
    /// How much of what a server sent is shown.
    const SHOWN: usize = 200;

    /// Shows the beginning of bytes that are no message.
    pub(crate) fn noise(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * Self::SHOWN)]);
        Self::Noise(text.chars().take(Self::SHOWN).collect())
    }
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Noise(text) => write!(f, "something that is no message: {text:?}"),
            Self::LspFraming => {
                f.write_str("messages framed with `Content-Length`, as language servers do")
            }
            Self::ByteOrderMark => f.write_str("a byte order mark before a message"),
            Self::AnswerForNobody(id) => write!(f, "an answer to request {id}, which is not open"),
            Self::InvalidAnswer(error) => write!(f, "an answer that is none: {error}"),
            Self::Complaint(error) => write!(f, "a complaint that names no request: {error}"),
            Self::ForeignProgress(token) => {
                write!(f, "progress for {token}, which is not open")
            }
            Self::UnwelcomeRequest { method } => {
                write!(f, "a request `{method}` that is not welcome")
            }
            Self::BadMark { tool, error } => write!(f, "a tool `{tool}` that is left out: {error}"),
            Self::ToolChanged { tool, members, .. } => {
                let members = members.join(", ");
                write!(
                    f,
                    "a tool `{tool}` that has changed since it was listed: {members}"
                )
            }
            Self::InvalidNotification { method, error } => {
                write!(f, "a notification `{method}` that does not fit: {error}")
            }
        }
    }
}
