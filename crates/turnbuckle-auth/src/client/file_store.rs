//! A token store in a folder that only its owner can read.

mod directory;
mod encryption;
mod format;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use directory::StoreDirectory;
pub use encryption::{EncryptionKey, Keyring};
pub use format::FileEncryption;
use format::StoreContents;
use sha2::{Digest, Sha256};
use tokio::{
    task,
    time::{self, Instant},
};
use turnbuckle_protocol::authenticator::BoxFuture;

use super::{
    registration::ClientRegistration,
    store::{StoreLock, StoredLogin, TokenStore},
};
use crate::{AuthorizationError, AuthorizationStep};

/// Stores logins in a folder, for all processes of the user.
///
/// The folder contains `logins.json` and lock files, all readable only by their owner: other permissions are corrected
/// before a file is used. The file is replaced atomically and synced to disk before a token is used, so that a crash
/// leaves the old or the new version. An unreadable file is an error and is never overwritten.
///
/// Processes of the same user, and anyone with an old disk, can still read it. With a [`keyring`](FileStore::keyring),
/// the file can be [encrypted](FileStore::set_encryption); then reading it also requires access to the keyring.
#[derive(Clone)]
pub struct FileStore {
    directory: Arc<StoreDirectory>,
    lock_timeout: Duration,
}

impl FileStore {
    /// Default time to wait while another process logs in.
    pub const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(10 * 60);

    /// Uses a folder, which is created when needed.
    ///
    /// It must be used by this store only, because its permissions are restricted to the owner.
    pub fn new(folder: impl Into<PathBuf>) -> FileStore {
        FileStore {
            directory: Arc::new(StoreDirectory::new(folder.into(), None)),
            lock_timeout: FileStore::DEFAULT_LOCK_TIMEOUT,
        }
    }

    /// Sets the keyring, which is used only if the file is or becomes encrypted.
    #[must_use]
    pub fn keyring(mut self, keyring: impl Keyring) -> FileStore {
        let folder = self.directory.folder().to_owned();
        self.directory = Arc::new(StoreDirectory::new(folder, Some(Arc::new(keyring))));
        self
    }

    /// Sets the time to wait for another process; by default [`DEFAULT_LOCK_TIMEOUT`](FileStore::DEFAULT_LOCK_TIMEOUT).
    #[must_use]
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> FileStore {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.directory.file()
    }

    /// Returns all stored logins, ordered by server URL.
    pub async fn logins(&self) -> Result<Vec<StoredLogin>, AuthorizationError> {
        self.read(|contents| contents.logins.into_values().collect())
            .await
    }

    /// Returns the encryption of the file; plaintext if the file does not exist yet.
    pub async fn encryption(&self) -> Result<FileEncryption, AuthorizationError> {
        let directory = Arc::clone(&self.directory);
        run_blocking(move || directory.encryption()).await
    }

    /// Changes the encryption of the file, which later writes keep.
    ///
    /// Encryption requires a [`keyring`](FileStore::keyring), which receives a key if it has none yet. Decryption
    /// requires the same keyring; the key stays there. If anything fails, the file is unchanged.
    pub async fn set_encryption(
        &self,
        encryption: FileEncryption,
    ) -> Result<(), AuthorizationError> {
        let directory = Arc::clone(&self.directory);
        run_blocking(move || directory.set_encryption(encryption)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        pick: impl FnOnce(StoreContents) -> T + Send + 'static,
    ) -> Result<T, AuthorizationError> {
        let directory = Arc::clone(&self.directory);
        run_blocking(move || directory.read().map(pick)).await
    }

    /// Reads, changes and writes the file under a lock.
    ///
    /// Runs to completion even if the caller is cancelled, so that an issued token is stored.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut StoreContents) -> T + Send + 'static,
    ) -> Result<T, AuthorizationError> {
        let directory = Arc::clone(&self.directory);
        run_blocking(move || directory.change(change)).await
    }

    /// Polls for the lock: a login may take minutes, and a thread that blocks on a lock cannot be cancelled.
    async fn wait_for(&self, name: String) -> Result<File, AuthorizationError> {
        const MAX_PAUSE: Duration = Duration::from_millis(500);
        let end = Instant::now() + self.lock_timeout;
        let mut pause = Duration::from_millis(10);
        loop {
            let (directory, name) = (Arc::clone(&self.directory), name.clone());
            if let Some(lock) = run_blocking(move || directory.try_lock(&name)).await? {
                return Ok(lock);
            }
            if Instant::now() >= end {
                return Err(self.lock_timed_out());
            }
            time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn lock_timed_out(&self) -> AuthorizationError {
        let reason = format!(
            "another process has held the lock of this login for {:?}",
            self.lock_timeout
        );
        AuthorizationError::new(AuthorizationStep::Store, reason)
            .with_hint("finish or cancel the login in the other program")
    }
}

impl TokenStore for FileStore {
    fn login<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredLogin>, AuthorizationError>> {
        let key = server_url.to_owned();
        Box::pin(self.read(move |mut contents| contents.logins.remove(&key)))
    }

    fn save<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let login = login.clone();
        Box::pin(self.change(move |contents| {
            contents.logins.insert(login.server_url.clone(), login);
        }))
    }

    fn delete<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<bool, AuthorizationError>> {
        let key = server_url.to_owned();
        Box::pin(self.change(move |contents| contents.logins.remove(&key).is_some()))
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClientRegistration>, AuthorizationError>> {
        let key = issuer.to_owned();
        Box::pin(self.read(move |mut contents| contents.registrations.remove(&key)))
    }

    fn save_registration<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a ClientRegistration>,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let (key, client) = (issuer.to_owned(), client.cloned());
        Box::pin(self.change(move |contents| {
            match client {
                Some(client) => contents.registrations.insert(key, client),
                None => contents.registrations.remove(&key),
            };
        }))
    }

    fn lock<'a>(
        &'a self,
        server_url: &'a str,
    ) -> BoxFuture<'a, Result<StoreLock, AuthorizationError>> {
        // A URL is not a valid file name.
        let digest = Sha256::digest(server_url);
        let name: String = digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Box::pin(async move {
            let lock = self.wait_for(format!("{name}.lock")).await?;
            Ok(StoreLock::new(lock))
        })
    }
}

/// Runs a blocking operation on a separate thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AuthorizationError> + Send + 'static,
) -> Result<T, AuthorizationError> {
    match task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(AuthorizationError::new(
            AuthorizationStep::Store,
            "the program is shutting down",
        )),
    }
}
