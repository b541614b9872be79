//! Authorization for MCP, step by step.
//!
//! One file per step, and HTTP behind one small trait, [`Fetch`](fetch::Fetch). The language in which both sides speak about it:
//!
//! - [`Challenge`]: what a server that refuses says in `WWW-Authenticate`, read and written.
//! - [`Scopes`]: what a token is good for, and what an operation needs.
//! - [`is_same_resource`]: whom a token is for.
//! - [`well_known`]: where metadata is to be found.
//! - [`ProtectedResource`] and [`AuthorizationServer`]: the metadata itself.
//! - [`Pkce`]: what ties the code of a login to whoever asked for it.
//! - [`Secret`]: what is never printed.
//!
//! A client on HTTP asks an [`Authorize`] for what to send along, and tells it of refusals; a [`Failure`] says at which step
//! there was no token, and what to do about it.
//!
//! With the feature `server` there is `server::ResourceServer`, the guard of a server whose callers come with tokens; with `jwt`,
//! which comes along, `jwt` and `dpop`: keys, signatures, and proofs that a key is there.

mod authorize;
mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "jwt")]
pub mod dpop;
mod failure;
pub mod fetch;
#[cfg(any(feature = "client", feature = "server"))]
mod form;
#[cfg(feature = "jwt")]
pub mod jwt;
mod metadata;
mod pkce;
mod place;
mod resource;
mod scope;
mod secret;
#[cfg(feature = "server")]
pub mod server;
pub mod well_known;

pub use authorize::{Authorize, Credentials, Next, Refused, Sending};
pub use challenge::{Challenge, InvalidChallenge};
pub use failure::{Failure, Step};
pub use metadata::{AuthorizationServer, InvalidMetadata, ProtectedResource};
pub use pkce::Pkce;
pub use resource::is_same_resource;
pub use scope::{InvalidScope, Scopes};
pub use secret::Secret;
