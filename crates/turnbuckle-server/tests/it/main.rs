//! What a server does, seen from the other end of a transport.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_batches;
mod http_bodies;
mod http_caller;
mod http_connections;
mod http_crowds;
mod http_gate;
#[cfg(feature = "http2")]
mod http_http2;
mod http_modern;
mod http_parameters;
mod http_sessions;
mod http_streams;
