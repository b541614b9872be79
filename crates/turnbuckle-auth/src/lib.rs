//! OAuth 2.1 authorization for MCP: the client, the resource server, and the types they share.
//!
//! All HTTP goes through one small trait, [`Fetch`](fetch::Fetch). Types used by both sides:
//!
//! - [`Challenge`]: a `WWW-Authenticate` challenge, parsed and written.
//! - [`Scopes`]: the scopes of a token, or those an operation requires.
//! - [`is_same_resource`]: compares resource identifiers (token audiences).
//! - [`well_known`]: the well-known URLs of metadata documents.
//! - [`ProtectedResource`] and [`AuthorizationServer`]: the metadata documents.
//! - [`Pkce`]: the PKCE verifier and challenge of a login.
//! - [`Secret`]: a string that is never printed.
//!
//! An HTTP client gets the headers of each request from a [`CredentialProvider`] and passes 401 and 403 responses to
//! it. An [`AuthorizationError`] names the step that failed and the next thing to try.
//!
//! The feature `client` adds `client::OAuth`, which discovers, registers, logs in and refreshes. The feature `server`
//! adds `server::ResourceServer`, which verifies access tokens. Both enable `jwt`, which adds the modules `jwt` (keys
//! and signatures) and `dpop` (proofs of possession).

#[cfg(any(feature = "client", feature = "server"))]
mod basic_auth;
mod challenge;
#[cfg(feature = "client")]
pub mod client;
mod credential_provider;
#[cfg(feature = "jwt")]
pub mod dpop;
mod error;
pub mod fetch;
#[cfg(feature = "jwt")]
pub mod jwt;
mod metadata;
mod pkce;
mod scope;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod sync;
#[cfg(feature = "jwt")]
mod unix_time;
pub mod well_known;

pub use challenge::{Challenge, InvalidChallenge};
pub use credential_provider::{
    CredentialProvider, Credentials, RetryDecision, UnauthorizedResponse, UnsignedRequest,
};
pub use error::{AuthorizationError, AuthorizationStep};
pub use metadata::{AuthorizationServer, InvalidMetadata, ProtectedResource, is_same_resource};
pub use pkce::Pkce;
pub use scope::{InvalidScope, Scopes};
pub use turnbuckle_text::Secret;
