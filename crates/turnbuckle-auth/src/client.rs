//! The client: from a refusal to a token that works.
//!
//! The steps, each in a file, remember nothing: [`discovery`] finds out who gives tokens for a server, [`registration`] makes the
//! client known there, [`authorization`] sends the user to log in, [`token`] gets tokens by each of the grants, and [`device`]
//! waits for a login elsewhere.
//!
//! [`OAuth`] takes them in the right order for a client on HTTP, and remembers what came of it in a [`Store`]. Whoever can log in
//! is an [`Interact`]; the person at this machine is [`Loopback`].

pub mod authorization;
pub mod device;
pub mod discovery;
#[cfg(test)]
mod hostile;
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

pub use interact::Interact;
pub use loopback::Loopback;
pub use oauth::{Dpop, Grant, OAuth};
pub use store::{FileForm, FileStore, Keyring, Login, MemoryStore, SealingKey, Store, StoreLock};
