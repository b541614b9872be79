//! HTTP headers that repeat parts of a message, and those that say what a body is.
//!
//! Since revision 2026-07-28 a request names its method, its target and marked arguments in headers as
//! well, so that proxies can route it. Whoever reads the body compares the two. Works on strings:
//! finding the headers is the business of the transport.

mod argument;
mod mark;
mod media;
mod value;

#[cfg(test)]
mod tests;

pub use argument::{Mismatch, Unsendable, check_argument, encode_argument};
pub use mark::{BadMark, Mark, marks};
pub use media::{Acceptable, MediaType, acceptable, content_type};
pub use value::{BadValue, decode, encode};

/// What the name of a header that repeats an argument begins with.
pub const PARAM_PREFIX: &str = "Mcp-Param-";
