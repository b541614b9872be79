//! How messages are framed on each transport.
//!
//! - [`lines`]: one message per line, as on stdio.
//! - [`sse`]: server-sent events, both ways.
//! - [`headers`]: the values of HTTP headers that repeat parts of a message.
//! - [`pieces`]: small messages that come in pieces, written as one.
//!
//! All of it works on slices and strings; none of it knows a socket or an HTTP library.

pub mod headers;
pub mod lines;
pub mod pieces;
pub mod sse;
