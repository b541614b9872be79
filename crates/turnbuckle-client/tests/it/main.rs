//! Tests of the client through its public interface.

mod calls;
mod fake_http;
mod own_server;
