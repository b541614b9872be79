//! Where logins are kept.

mod file;
mod memory;

use std::fmt;

use serde::{Deserialize, Serialize};
use turnbuckle_protocol::guard::BoxFuture;

use super::{registration::Registered, token::Tokens};
use crate::{AuthorizationServer, Failure, Scopes, Secret};

pub use file::{FileForm, FileStore, Keyring, SealingKey};
pub use memory::MemoryStore;

/// Keeps logins by the URL of their server, and registrations by the issuer that knows them.
///
/// Several clients, in several processes, may share one: then there is one login and one refresh at a time, and all of them
/// use what came of it. [`FileStore`] is such a store, [`MemoryStore`] one that ends with its process.
pub trait Store: Send + Sync + 'static {
    /// Returns the login for a server.
    fn login<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<Option<Login>, Failure>>;

    /// Keeps a login, in place of the one before; when this is done, it is there to stay.
    fn save<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<(), Failure>>;

    /// Forgets the login for a server; says whether there was one.
    fn forget<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<bool, Failure>>;

    /// Returns as what we are known to an issuer.
    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<Registered>, Failure>>;

    /// Keeps as what we are known to an issuer; nothing if it has forgotten us.
    fn register<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a Registered>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Waits until nobody else changes the login for a server, and keeps others from it until the lock is dropped.
    fn lock<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<StoreLock, Failure>>;
}

/// A login: who gave which tokens, for which server, to whom.
///
/// Written out, it holds secrets; printed, it does not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Login {
    /// The URL of the server, as the user wrote it.
    pub server_url: String,
    /// What the tokens are for, byte for byte as the server named itself.
    pub resource: String,
    /// Who gave the tokens, and where new ones are given.
    pub server: AuthorizationServer,
    /// As what we are known there.
    pub client: Registered,
    /// The tokens.
    pub tokens: Tokens,
    /// When they were given, in seconds since 1970.
    pub obtained: u64,
    /// What was asked for; nothing if the choice was left to the authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Scopes>,
    /// The key that the tokens are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
}

impl Login {
    /// Returns who gave the tokens.
    pub fn issuer(&self) -> &str {
        &self.server.issuer
    }
}

/// Keeps others from a login until it is dropped.
pub struct StoreLock {
    _held: Box<dyn Send + Sync>,
}

impl StoreLock {
    /// Wraps whatever frees the lock when it is dropped.
    pub fn new(held: impl Send + Sync + 'static) -> StoreLock {
        StoreLock {
            _held: Box::new(held),
        }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}
