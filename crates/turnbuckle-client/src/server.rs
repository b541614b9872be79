//! What a server said about itself.

use turnbuckle_protocol::Revision;
use turnbuckle_protocol::types::{Implementation, ServerCapabilities};

use crate::lifecycle::Era;

/// The server at the other end, as it described itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Server {
    /// Who it is; servers of 2026-07-28 may leave it out.
    pub info: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it, for a model to read.
    pub instructions: Option<String>,
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// Whether it remembers a handshake.
    pub era: Era,
    /// All revisions that it says it speaks; those with a handshake name only one.
    pub supported: Vec<String>,
}
