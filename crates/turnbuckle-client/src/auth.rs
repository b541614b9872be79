//! Credentials for HTTP requests.
//!
//! [`HttpTarget::authorization`](crate::http::HttpTarget::authorization) takes an [`Authorize`]. The crate
//! `turnbuckle-auth`, with its feature `client`, provides `OAuth`, which implements MCP authorization; it fetches
//! metadata through an [`HttpFetcher`](crate::http::HttpFetcher). An implementation of your own is small:
//!
//! ```
//! use turnbuckle_client::{
//!     auth::{Authorize, BoxFuture, Credentials, Failure, Next, Refused, Secret, Sending},
//!     http::HttpTarget,
//! };
//!
//! /// Signs what is sent.
//! struct Signed;
//!
//! impl Authorize for Signed {
//!     fn credentials<'a>(
//!         &'a self,
//!         sending: Sending<'a>,
//!     ) -> BoxFuture<'a, Result<Credentials, Failure>> {
//!         let signature = Secret::new(format!("signature of {}", sending.url));
//!         let credentials = Credentials::new(1, vec![("x-signature", signature)]);
//!         Box::pin(async { Ok(credentials) })
//!     }
//!
//!     fn refused<'a>(&'a self, _: Refused<'a>) -> BoxFuture<'a, Result<Next, Failure>> {
//!         Box::pin(async { Ok(Next::GiveUp) })
//!     }
//! }
//!
//! let server = HttpTarget::new("https://api.example.com/mcp").authorization(Signed);
//! ```

pub use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, Challenge, CredentialProvider, Credentials,
    RetryDecision, Secret, UnauthorizedResponse, UnsignedRequest, fetch,
};
pub use turnbuckle_protocol::authenticator::BoxFuture;
