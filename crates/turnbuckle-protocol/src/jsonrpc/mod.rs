//! The JSON-RPC 2.0 envelope, read without building a tree.
//!
//! [`parse`] looks at every byte of a message once: UTF-8, JSON grammar, escapes, depth, and where the
//! members of the envelope and of `params` lie. What it hands out borrows from the received buffer;
//! `params` and `result` stay raw JSON text until someone asks for a type.
//!
//! Stricter than JSON where leniency would let two readers of one message disagree: a duplicate member
//! of the envelope or of `params`, a lone surrogate, more than [`MAX_DEPTH`] levels, a member whose
//! name differs by case are all refused or not seen. Knows nothing of MCP methods.

mod envelope;
mod error;
mod id;
mod message;
mod number;
mod object;
mod params;
mod scan;
mod scanned_result;
mod text;
mod write;

#[cfg(test)]
mod tests;

pub use envelope::{MAX_BATCH, parse};
pub use error::{Excerpt, RpcError, code};
pub use id::{InvalidId, RequestId};
pub use message::{Incoming, Malformed, Message, Notification, Request, Response};
pub(crate) use number::Integer;
pub use object::{Members, Object};
pub use params::Params;
pub use scan::MAX_DEPTH;
pub(crate) use text::plain_length;
pub use text::string_value;
pub use write::{
    write_error, write_error_with_null_id, write_notification, write_request, write_result,
};
