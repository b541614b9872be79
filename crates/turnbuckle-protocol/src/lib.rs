//! The wire format of the Model Context Protocol.
//!
//! Sans-IO: without sockets, clocks or a runtime. Bytes are passed as slices, time as an argument.
//!
//! - [`json`]: strict deserialization of JSON.
//! - [`jsonrpc`]: the JSON-RPC envelope, parsed without building a tree.
//! - [`types`]: every payload of every revision, in its newest form.
//! - [`recording`]: recordings of traffic, their redaction, and which messages belong together.
//! - [`revision`]: the differences of each revision, one file per date.
//! - [`method`]: the table of methods.
//! - [`codec`]: newline-delimited JSON, server-sent events, header values.
//! - [`timeouts`]: timeouts of a request.
//! - [`authenticator`]: the interface between an HTTP server and the code that verifies credentials.
//! - `skills`, a feature: the front matter of a skill and the digest of its files.
//! - [`uri_template`]: URI templates of resources.

pub mod authenticator;
pub mod codec;
pub mod json;
pub mod jsonrpc;
pub mod meta;
pub mod method;
pub mod recording;
pub mod revision;
#[cfg(feature = "skills")]
pub mod skills;
pub mod timeouts;
pub mod types;
pub mod uri_template;

pub use authenticator::Principal;
pub use jsonrpc::{RequestId, RpcError};
pub use meta::Meta;
pub use revision::{Revision, VersionedPayload};
