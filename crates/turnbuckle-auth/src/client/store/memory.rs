//! A store that ends with its process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use turnbuckle_protocol::guard::BoxFuture;

use super::{super::registration::Registered, Login, Store, StoreLock};
use crate::Failure;

/// Keeps logins as long as the process lives. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    logins: HashMap<String, Login>,
    registrations: HashMap<String, Registered>,
    locks: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl MemoryStore {
    /// Makes an empty one.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held, and a map is whole after any panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn login<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<Option<Login>, Failure>> {
        let login = self.kept().logins.get(server_url).cloned();
        done(login)
    }

    fn save<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<(), Failure>> {
        let key = login.server_url.clone();
        self.kept().logins.insert(key, login.clone());
        done(())
    }

    fn forget<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        let gone = self.kept().logins.remove(server_url);
        done(gone.is_some())
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<Registered>, Failure>> {
        let client = self.kept().registrations.get(issuer).cloned();
        done(client)
    }

    fn register<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a Registered>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let mut kept = self.kept();
        match client {
            Some(client) => kept.registrations.insert(issuer.to_owned(), client.clone()),
            None => kept.registrations.remove(issuer),
        };
        done(())
    }

    fn lock<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<StoreLock, Failure>> {
        let lock = Arc::clone(self.kept().locks.entry(server_url.to_owned()).or_default());
        Box::pin(async move { Ok(StoreLock::new(lock.lock_owned().await)) })
    }
}

fn done<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, Failure>> {
    Box::pin(std::future::ready(Ok(value)))
}
