//! Authentication and authorization over HTTP.

mod challenges;
mod layer;
mod owners;
mod scopes;
pub(crate) mod test_authenticator;
mod tokens;
mod unread_bodies;
