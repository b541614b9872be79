//! A Model Context Protocol client for every server.

pub mod http;

#[cfg(test)]
#[path = "../tests/it/fake_http.rs"]
mod fake_http;
