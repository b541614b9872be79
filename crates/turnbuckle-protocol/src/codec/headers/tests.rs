//! Tests of header values, param headers and media types.

mod arguments;
mod media;
mod param_headers;
mod values;
