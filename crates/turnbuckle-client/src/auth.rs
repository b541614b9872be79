//! What a client on HTTP says about credentials, and to whom.
//!
//! [`Http::authorization`](crate::http::Http::authorization) takes an [`Authorize`]. The crate `turnbuckle-auth`, with its feature
//! `client`, has one that does all of what MCP says about authorization, `OAuth`; what it fetches, it fetches by a
//! [`Fetcher`](crate::http::Fetcher). One of your own is small:
//!
//! ```
//! use turnbuckle_client::{
//!     auth::{Authorize, BoxFuture, Credentials, Failure, Next, Refused, Secret, Sending},
//!     http::Http,
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
//! let server = Http::new("https://api.example.com/mcp").authorization(Signed);
//! ```

pub use turnbuckle_auth::{
    Authorize, Challenge, Credentials, Failure, Next, Refused, Secret, Sending, Step, fetch,
};
pub use turnbuckle_protocol::guard::BoxFuture;
