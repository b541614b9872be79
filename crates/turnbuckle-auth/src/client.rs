//! The client: from a refusal to a token that works.
//!
//! The steps, each in a file, remember nothing.

pub mod authorization;
pub mod device;
pub mod discovery;
pub mod registration;
#[cfg(test)]
mod testing;
pub mod token;

mod interact;
mod loopback;
mod oauth;
mod store;
