//! Storage of logins and registrations.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use serde::{Deserialize, Serialize};
use turnbuckle_protocol::authenticator::BoxFuture;

pub use super::file_store::{EncryptionKey, FileEncryption, FileStore, Keyring};
use super::{registration::ClientRegistration, token::Tokens};
use crate::{AuthorizationError, AuthorizationServer, Scopes, Secret, sync::lock};

/// Stores logins by server URL, and client registrations by issuer.
///
/// Several clients, also in several processes, may share one store: then one of them logs in or refreshes at a time,
/// and all use the result. [`FileStore`](super::FileStore) can be shared like that; [`MemoryStore`] ends with its
/// process.
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the login for a server.
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>>;

    /// Stores a login, replacing the previous one. It must be durable when the future completes.
    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>>;

    /// Deletes the login for a server; returns whether there was one.
    fn delete<'a>(&'a self, server_url: &'a str)
    -> BoxFuture<'a, Result<bool, AuthorizationError>>;

    /// Returns the client registration for an issuer.
    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClientRegistration>, AuthorizationError>>;

    /// Stores the client registration for an issuer; `None` deletes it.
    fn save_registration<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a ClientRegistration>,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>>;

    /// Acquires the lock for the login of a server. It is released when the returned value is dropped.
    fn lock<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<StoreLock, AuthorizationError>>;
}

/// A login: the tokens for a server and everything needed to refresh them.
///
/// Its serialization contains secrets; its `Debug` output does not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredLogin {
    /// URL of the server, as the user wrote it.
    pub server_url: String,
    /// Resource identifier that the tokens were issued for.
    pub resource: String,
    /// The authorization server that issued the tokens.
    pub server: AuthorizationServer,
    /// The client registration that was used.
    pub client: ClientRegistration,
    /// The tokens.
    pub tokens: Tokens,
    /// Unix time in seconds when the tokens were issued.
    pub obtained: u64,
    /// The requested scopes; `None` if the authorization server chose them.
    #[serde(rename = "asked", default, skip_serializing_if = "Option::is_none")]
    pub requested_scopes: Option<Scopes>,
    /// The key that the tokens are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
}

impl StoredLogin {
    /// Returns the issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.server.issuer
    }
}

/// Lock on the login of a server, released on drop.
pub struct StoreLock {
    _guard: Box<dyn Send + Sync>,
}

impl StoreLock {
    /// Wraps a guard that releases the lock on drop.
    pub fn new(guard: impl Send + Sync + 'static) -> StoreLock {
        StoreLock {
            _guard: Box::new(guard),
        }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}

/// Stores logins in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    contents: Arc<Mutex<MemoryContents>>,
}

#[derive(Default)]
struct MemoryContents {
    logins: HashMap<String, StoredLogin>,
    registrations: HashMap<String, ClientRegistration>,
    locks: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn contents(&self) -> MutexGuard<'_, MemoryContents> {
        // No code panics while holding the lock, and the maps stay consistent in any case.
        lock(&self.contents)
    }
}

impl TokenStore for MemoryStore {
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>> {
        let login = self.contents().logins.get(server_url).cloned();
        ready(login)
    }

    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let key = login.server_url.clone();
        self.contents().logins.insert(key, login.clone());
        ready(())
    }

    fn delete<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<bool, AuthorizationError>> {
        let removed = self.contents().logins.remove(server_url);
        ready(removed.is_some())
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClientRegistration>, AuthorizationError>> {
        let client = self.contents().registrations.get(issuer).cloned();
        ready(client)
    }

    fn save_registration<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a ClientRegistration>,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let mut contents = self.contents();
        match client {
            Some(client) => contents
                .registrations
                .insert(issuer.to_owned(), client.clone()),
            None => contents.registrations.remove(issuer),
        };
        ready(())
    }

    fn lock<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<StoreLock, AuthorizationError>> {
        let lock = Arc::clone(
            self.contents()
                .locks
                .entry(server_url.to_owned())
                .or_default(),
        );
        Box::pin(async move { Ok(StoreLock::new(lock.lock_owned().await)) })
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, AuthorizationError>> {
    Box::pin(std::future::ready(Ok(value)))
}
