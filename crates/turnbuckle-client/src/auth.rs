//! Credentials for HTTP requests.
//!
//! [`HttpTarget::authorization`](crate::http::HttpTarget::authorization) takes a [`CredentialProvider`]. The crate
//! `turnbuckle-auth`, with its feature `client`, provides `OAuth`, which implements MCP authorization; it fetches
//! metadata through an [`HttpFetcher`](crate::http::HttpFetcher). A custom provider is small:
//!
//! ```
//! use turnbuckle_client::{
//!     auth::{
//!         AuthorizationError, BoxFuture, CredentialProvider, Credentials, RetryDecision, Secret,
//!         UnauthorizedResponse, UnsignedRequest,
//!     },
//!     http::HttpTarget,
//! };
//!
//! /// Signs every request.
//! struct Signer;
//!
//! impl CredentialProvider for Signer {
//!     fn credentials<'a>(
//!         &'a self,
//!         request: UnsignedRequest<'a>,
//!     ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
//!         let signature = Secret::new(format!("signature of {}", request.url));
//!         let credentials = Credentials::new(1, vec![("x-signature", signature)]);
//!         Box::pin(async { Ok(credentials) })
//!     }
//!
//!     fn on_unauthorized<'a>(
//!         &'a self,
//!         _: UnauthorizedResponse<'a>,
//!     ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
//!         Box::pin(async { Ok(RetryDecision::GiveUp) })
//!     }
//! }
//!
//! let server = HttpTarget::new("https://api.example.com/mcp").authorization(Signer);
//! ```

pub use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, Challenge, CredentialProvider, Credentials,
    RetryDecision, Secret, UnauthorizedResponse, UnsignedRequest, fetch,
};
pub use turnbuckle_protocol::authenticator::BoxFuture;
