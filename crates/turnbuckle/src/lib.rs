//! The Model Context Protocol for Rust. This is the crate to depend on.
//!
//! A tool is a function from typed arguments to a result. Add functions to a [`Server`], and serve it on stdio or
//! HTTP. The server supports all published revisions of the protocol at the same time; handlers do not depend on the
//! revision of the client.
//!
//! ```no_run
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use turnbuckle::{Server, Tool, ToolError};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// The name of the person.
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
//! On HTTP the last lines are:
//!
//! ```no_run
//! # async fn run(server: turnbuckle::Server) -> Result<(), Box<dyn std::error::Error>> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! turnbuckle::http::serve(listener, server).await?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `macros`, attributes shorten this: the parameters of a function become the arguments, its doc
//! comment becomes the description, and `#[tool(read_only)]` on `greet` generates `greet::tool()`. `#[prompt]` and
//! `#[resource]` work in the same way.
//!
//! # Overview
//!
//! - [`stdio`], [`http`], [`ndjson`]: the transports, each with a `serve` function and a builder for its options. The
//!   feature `http2` adds HTTP/2.
//! - [`Server`] and its items: [`Tool`], [`Resource`], [`ResourceTemplate`], [`Prompt`]. The feature `validation` adds
//!   `Server::validate_input` and `Server::validate_output`, which enforce the constraints of tool schemas beyond their
//!   types ([`SchemaValidator`] does so with another validator); `skills` adds `Server::skills` for folders of instructions.
//! - [`Extension`]: methods that are not part of the protocol.
//! - [`middleware`]: layers around every request: limits, timeouts, an audit log, your own. The feature `metrics`
//!   adds metrics. Every request has a `tracing` span.
//! - [`Context`]: operations of a handler: report progress, log, request input from the user or the model.
//! - `client`, a feature: one `Client` for every server, transport and revision; `memory` connects it to a server in
//!   the same process. The feature `tls` adds `https`.
//! - `gateway`, a feature: a `Gateway` relays between clients and servers of any revision and transport.
//! - `auth`, a feature: OAuth 2.1. `auth::server::ResourceServer` verifies tokens before a request is processed
//!   ([`Http::authenticator`](http::Http::authenticator)); tools, prompts and resources declare the scopes they require.
//!   `auth::client::OAuth` obtains tokens for `client::http::HttpTarget::authorization`, and `client::http::Fetcher`
//!   fetches metadata for both.
//! - [`types`]: the payloads of the protocol in their newest form: content blocks, icons, forms. Write these names with
//!   their module: `types::Tool` is the definition of a tool in a list, [`Tool`] the function with its definition.
//! - [`protocol`]: the layer below: JSON-RPC, revisions, the table of methods.
//! - [`testing`]: an in-memory client for tests of a server.
//! - [`store`]: storage of sessions, events and changes, and the traits for other backends. The feature `redis` adds
//!   `redis::RedisStore`, for several instances behind one endpoint.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
#[cfg(doctest)]
mod guides;
#[cfg(feature = "client")]
pub mod memory;

#[cfg(feature = "auth")]
pub use turnbuckle_auth as auth;
#[cfg(feature = "client")]
pub use turnbuckle_client as client;
#[cfg(feature = "gateway")]
pub use turnbuckle_gateway as gateway;
#[cfg(feature = "macros")]
pub use turnbuckle_macros::{prompt, resource, tool};
pub use turnbuckle_protocol::{Principal, types};
// Listed one by one: a new public item of the server is not a public item here until it is added.
pub use turnbuckle_server::{
    BlockingHandler, CacheHint, ClientRequestError, CompletionRequest, Contents, Context,
    Elicitation, ElicitationOutcome, Extension, ExtensionMethod, Handle, HandleError, HandleValue,
    InfallibleHandler, InternalError, IntoCompleter, IntoToolResult, InvalidExtension,
    InvalidPageSize, InvalidResourceUri, InvalidScope, InvalidStateKeys, InvalidTool, Messages,
    MethodHandler, MountError, Prompt, PromptHandler, RawToolHandler, ReadHandler,
    ReadTemplateHandler, RequestError, Resource, ResourceTemplate, ResultExt, SamplingBuilder,
    SchemaValidator, ServedEras, Server, TaskSupport, Tool, ToolError, ToolHandler, ToolResult,
    Variables, http, middleware, ndjson, relay, stdio, testing,
};
#[cfg(feature = "skills")]
pub use turnbuckle_server::{Skill, SkillError, Skills};
pub use turnbuckle_store as store;
#[cfg(feature = "redis")]
pub use turnbuckle_store_redis as redis;

/// The layer below the payloads of [`types`].
pub mod protocol {
    pub use turnbuckle_protocol::{
        Meta, Principal, RequestId, Revision, RpcError, VersionedPayload, authenticator, codec,
        jsonrpc, meta, method, revision, timeouts, uri_template,
    };
}
