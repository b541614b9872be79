//! What is on the wire of the Model Context Protocol.
//!
//! Pure: no socket, no clock, no runtime. Bytes come in as slices, time as an argument.
//!
//! - [`json`]: JSON into types, strictly.
//! - [`jsonrpc`]: the envelope, read without building a tree.
//! - [`types`]: every payload of every revision, in its newest shape.
//! - [`revision`]: one file per date with what it does differently.
//! - [`method`]: the one table of methods.
//! - [`codec`]: newline-delimited JSON, server-sent events, header values.
//! - [`pending`]: the table of open requests.
//! - [`guard`]: the seam to whoever verifies callers on HTTP.
//! - `skills`, a feature: the head of a skill and the hash of its files.
//! - [`uri_template`]: the addresses of resources that come in families.

pub mod codec;
pub mod guard;
pub mod json;
pub mod jsonrpc;
pub mod meta;
pub mod method;
pub mod pending;
pub mod principal;
pub mod revision;
#[cfg(feature = "skills")]
pub mod skills;
pub mod types;
pub mod uri_template;

pub use jsonrpc::{RequestId, RpcError};
pub use meta::Meta;
pub use principal::Principal;
pub use revision::{Revision, Versioned};
