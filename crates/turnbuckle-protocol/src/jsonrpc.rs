//! The JSON-RPC 2.0 envelope, parsed without building a tree.
//!
//! [`parse`] reads every byte of a message once: UTF-8, JSON grammar, escapes, depth, and the positions of the
//! members of the envelope and of `params`. The result borrows from the received buffer; `params` and `result` stay
//! raw JSON text until they are deserialized.
//!
//! It is stricter than JSON where two readers of one message could disagree: it rejects a duplicate member of the
//! envelope or of `params`, a lone surrogate, and more than [`MAX_DEPTH`] levels, and compares member names exactly.
//! It does not depend on MCP methods.

mod envelope;
mod error;
mod id;
mod json_string;
mod message;
mod object;
mod params;
mod scan;
mod write;

#[cfg(test)]
mod tests;

pub use envelope::{MAX_BATCH, parse};
pub use error::{RpcError, Truncated, code};
pub(crate) use id::Integer;
pub use id::{InvalidRequestId, RequestId};
pub use json_string::{needs_no_escapes, string_value};
pub(crate) use json_string::{plain_length, unescape};
pub use message::{Incoming, MalformedMessage, Message, Notification, Request, Response};
pub use object::{RawMembers, RawObject};
pub use params::{OwnedParams, Params};
pub use scan::MAX_DEPTH;
pub(crate) use scan::{ScanError, Scanner, Span};
pub use write::{
    write_error, write_error_with_null_id, write_notification, write_request, write_result,
};
