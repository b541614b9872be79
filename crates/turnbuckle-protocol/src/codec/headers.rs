//! HTTP headers that repeat parts of a message, and media types.
//!
//! Since revision 2026-07-28 a request repeats its method, its target and selected arguments in headers, so that
//! proxies can route it. The receiver compares them with the body. The functions work on strings; the transport finds
//! the headers.

mod media;
mod param_header;
mod value;

#[cfg(test)]
mod tests;

pub use media::{Accept, MediaType, parse_accept, parse_content_type};
pub use param_header::{InvalidParamHeader, ParamHeader, param_headers};
pub use value::{
    HeaderMismatch, InvalidHeaderValue, UnencodableArgument, check_argument, decode, encode,
    encode_argument,
};

/// The prefix of headers that repeat an argument.
pub const PARAM_PREFIX: &str = "Mcp-Param-";
