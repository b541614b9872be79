//! The Model Context Protocol for Rust: the one crate to depend on.
//!
//! A tool is a function from typed arguments to a result. Put functions into a [`Server`], and serve it: on stdio to
//! the program that started it, on HTTP to everyone who may ask. All published revisions of the protocol are spoken
//! at once, and a function never learns which of them its caller speaks.
//!
//! ```no_run
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use turnbuckle::{Server, Tool, ToolError};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! async fn greet(args: Greet) -> Result<String, ToolError> {
//!     Ok(format!("Hello, {}!", args.name))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::new("hello", "1.0.0")
//!         .tool(Tool::new("greet", greet).description("Greets someone").read_only());
//!     turnbuckle::stdio::serve(server).await?;
//!     Ok(())
//! }
//! ```
//!
//! On HTTP the last lines are
//!
//! ```no_run
//! # async fn run(server: turnbuckle::Server) -> Result<(), Box<dyn std::error::Error>> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! turnbuckle::http::serve(listener, server).await?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `macros`, attributes shorten this: the parameters of a function become the arguments, its doc comment
//! becomes the description, and `#[tool(read_only)]` on `greet` gives `greet::tool()`. So do `#[prompt]` and `#[resource]`.
//!
//! # Where things are
//!
//! - [`stdio`], [`http`], [`lines`]: the transports, each with one verb and a builder for its options. The feature `http2`
//!   adds HTTP/2; nothing else changes.
//! - [`Server`] and what it offers: [`Tool`], [`Resource`], [`ResourceTemplate`], [`Prompt`]. The feature `validation`
//!   enforces what the schemas of tools say beyond their types; `skills` adds `Server::skills` for folders of instructions.
//! - [`Extension`]: methods that the protocol itself does not have.
//! - [`middleware`]: layers around every request: limits, timeouts, an audit log, your own. The feature `metrics` adds
//!   numbers for dashboards. Every request has a `tracing` span in any case.
//! - [`Context`]: what a handler may do beside returning its result: report progress, log, ask the user or the model.
//! - `client`, a feature: the other side. One `Client` for every server, wherever it is and whichever revision it speaks;
//!   `memory` joins one to a server in the same program. The feature `tls` adds `https`.
//! - `auth`, a feature: who may ask. `auth::server::ResourceServer` verifies tokens before a request is looked at
//!   ([`Http::guard`](http::Http::guard)); tools, prompts and resources say which scopes they take. `auth::client::OAuth` gets
//!   tokens for `client::http::Http::authorization`, and `client::http::Fetcher` fetches what both have to read.
//! - [`types`]: the payloads of the protocol, in their newest shape: content blocks, icons, forms.
//! - [`protocol`]: what lies below them: JSON-RPC, revisions, the table of methods.
//! - [`testing`]: a client in memory, for tests of your server.
//! - [`store`]: where sessions, events and changes are kept, and the traits for a place of your own.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod expansion;
#[cfg(doctest)]
mod guides;
#[cfg(feature = "client")]
pub mod memory;

#[cfg(feature = "auth")]
pub use turnbuckle_auth as auth;
#[cfg(feature = "client")]
pub use turnbuckle_client as client;
#[cfg(feature = "macros")]
pub use turnbuckle_macros::{prompt, resource, tool};
pub use turnbuckle_protocol::{Principal, types};
pub use turnbuckle_server::*;
pub use turnbuckle_store as store;

/// What is on the wire below the payloads of [`types`].
pub mod protocol {
    pub use turnbuckle_protocol::{
        Meta, Principal, RequestId, Revision, RpcError, Versioned, codec, guard, jsonrpc, meta,
        method, pending, revision, uri_template,
    };
}
