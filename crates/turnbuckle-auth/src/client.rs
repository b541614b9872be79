//! The client: from a refusal to a token that works.
//!
//! The steps, each in a file, remember nothing: [`discovery`] finds out who gives tokens for a server, [`registration`] makes the
//! client known there, [`authorization`] sends the user to log in, [`token`] gets tokens by each of the grants, and [`device`]
//! waits for a login elsewhere.

pub mod authorization;
pub mod device;
pub mod discovery;
pub mod registration;
#[cfg(test)]
mod testing;
pub mod token;

mod form;
mod safe_url;
mod told;

mod interact;
mod loopback;
mod oauth;
mod store;
