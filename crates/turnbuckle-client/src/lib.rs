//! A Model Context Protocol client for every server.

pub mod http;
