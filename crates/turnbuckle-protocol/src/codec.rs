//! Framing of messages on each transport.
//!
//! - [`ndjson`]: one message per line, as on stdio.
//! - [`sse`]: server-sent events, encoding and decoding.
//! - [`headers`]: HTTP header values that repeat parts of a message.
//! - [`join_small`]: joins small buffers for one write.
//!
//! Everything works on slices and strings, without sockets or an HTTP library.

pub mod headers;
pub mod join_small;
pub mod ndjson;
pub mod sse;
