//! Authorization for MCP, step by step.
//!
//! One file per step, and no HTTP in any of them: what is read was fetched by somebody else, and what is written is sent by
//! somebody else. So far there is the language in which both sides speak about it:
//!
//! - [`Challenge`]: what a server that refuses says in `WWW-Authenticate`, read and written.
//! - [`Scopes`]: what a token is good for, and what an operation needs.
//! - [`is_same_resource`]: whom a token is for.
//! - [`well_known`]: where metadata is to be found.
//! - [`ProtectedResource`] and [`AuthorizationServer`]: the metadata itself.
//! - [`Pkce`]: what ties the code of a login to whoever asked for it.
//! - [`Secret`]: what is never printed.

mod challenge;
mod metadata;
mod pkce;
mod place;
mod resource;
mod scope;
mod secret;
pub mod well_known;

pub use challenge::{Challenge, InvalidChallenge};
pub use metadata::{AuthorizationServer, InvalidMetadata, ProtectedResource};
pub use pkce::Pkce;
pub use resource::is_same_resource;
pub use scope::{InvalidScope, Scopes};
pub use secret::Secret;
