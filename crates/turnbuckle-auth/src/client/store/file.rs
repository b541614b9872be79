//! A store in a folder that only its owner can read.

mod disk;
mod kept;
mod key;
mod seal;

#[cfg(test)]
mod tests;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{
    task,
    time::{self, Instant},
};
use turnbuckle_protocol::guard::BoxFuture;

use super::{super::registration::Registered, Login, Store, StoreLock};
use crate::{Failure, Step};
use disk::Disk;
use kept::Kept;

pub use kept::FileForm;
pub use key::{Keyring, SealingKey};

/// Keeps logins in a folder of its own, for every process of this user.
///
/// The folder holds one file, `logins.json`, and files that are only locked. Both can be read by their owner alone: what is
/// found open to others is closed before it is used. The file is replaced as a whole and is on the disk before a token is
/// used, so that a crash leaves either the old one or the new one. A file that cannot be read is an error and is never
/// written over.
///
/// Who has the rights of the user, or an old disk, can still read it. With a [`keyring`](FileStore::keyring) the file can be
/// [sealed](FileStore::keep_as): then it tells something only to who can also ask the keyring.
#[derive(Clone)]
pub struct FileStore {
    disk: Arc<Disk>,
    patience: Duration,
}

impl FileStore {
    /// How long to wait while another process logs in.
    pub const PATIENCE: Duration = Duration::from_secs(10 * 60);

    /// Uses a folder, which is made when there is something to keep.
    ///
    /// It must belong to this store alone, since nobody else will be able to look into it.
    pub fn new(folder: impl Into<PathBuf>) -> FileStore {
        FileStore {
            disk: Arc::new(Disk::new(folder.into(), None)),
            patience: FileStore::PATIENCE,
        }
    }

    /// Has this keyring at hand for a file that is sealed, or is to be; until then it is not asked.
    #[must_use]
    pub fn keyring(mut self, keyring: impl Keyring) -> FileStore {
        let folder = self.disk.folder().to_owned();
        self.disk = Arc::new(Disk::new(folder, Some(Arc::new(keyring))));
        self
    }

    /// Waits this long for another process, instead of [`PATIENCE`](FileStore::PATIENCE).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> FileStore {
        self.patience = patience;
        self
    }

    /// Returns where everything is kept.
    pub fn path(&self) -> &Path {
        self.disk.file()
    }

    /// Returns every login that is kept, in the order of the URLs of their servers.
    pub async fn logins(&self) -> Result<Vec<Login>, Failure> {
        self.read(|kept| kept.logins.into_values().collect()).await
    }

    /// Returns the form of the file; one that is not there yet begins as a plain one.
    pub async fn form(&self) -> Result<FileForm, Failure> {
        let disk = Arc::clone(&self.disk);
        aside(move || disk.form()).await
    }

    /// Brings the file into a form, which it keeps from then on, whoever writes it.
    ///
    /// To be sealed it takes a [`keyring`](FileStore::keyring), which is given a key if it has none yet. To be plain again, it takes
    /// the one that it was sealed with; the key stays there. Whatever fails, the file is as it was.
    pub async fn keep_as(&self, form: FileForm) -> Result<(), Failure> {
        let disk = Arc::clone(&self.disk);
        aside(move || disk.keep_as(form)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        pick: impl FnOnce(Kept) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let disk = Arc::clone(&self.disk);
        aside(move || disk.read().map(pick)).await
    }

    /// Reads, changes and writes, while nobody else does.
    ///
    /// Goes on to its end even if nobody waits for it any more: a token that was given is kept.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Kept) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let disk = Arc::clone(&self.disk);
        aside(move || disk.change(change)).await
    }

    /// Asks again and again, since a login may take minutes, and a thread that waits for a lock cannot be called back.
    async fn wait_for(&self, name: String) -> Result<File, Failure> {
        const LONGEST: Duration = Duration::from_millis(500);
        let end = Instant::now() + self.patience;
        let mut pause = Duration::from_millis(10);
        loop {
            let (disk, name) = (Arc::clone(&self.disk), name.clone());
            if let Some(lock) = aside(move || disk.try_lock(&name)).await? {
                return Ok(lock);
            }
            if Instant::now() >= end {
                return Err(self.busy());
            }
            time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    fn busy(&self) -> Failure {
        let reason = format!(
            "another process has kept this login locked for {:?}",
            self.patience
        );
        Failure::new(Step::Store, reason).cure("finish or end the login in the other program")
    }
}

impl Store for FileStore {
    fn login<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<Option<Login>, Failure>> {
        let key = server_url.to_owned();
        Box::pin(self.read(move |mut kept| kept.logins.remove(&key)))
    }

    fn save<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, Result<(), Failure>> {
        let login = login.clone();
        Box::pin(self.change(move |kept| {
            kept.logins.insert(login.server_url.clone(), login);
        }))
    }

    fn forget<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        let key = server_url.to_owned();
        Box::pin(self.change(move |kept| kept.logins.remove(&key).is_some()))
    }

    fn registration<'a>(
        &'a self,
        issuer: &'a str,
    ) -> BoxFuture<'a, Result<Option<Registered>, Failure>> {
        let key = issuer.to_owned();
        Box::pin(self.read(move |mut kept| kept.registrations.remove(&key)))
    }

    fn register<'a>(
        &'a self,
        issuer: &'a str,
        client: Option<&'a Registered>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let (key, client) = (issuer.to_owned(), client.cloned());
        Box::pin(self.change(move |kept| {
            match client {
                Some(client) => kept.registrations.insert(key, client),
                None => kept.registrations.remove(&key),
            };
        }))
    }

    fn lock<'a>(&'a self, server_url: &'a str) -> BoxFuture<'a, Result<StoreLock, Failure>> {
        // A URL is no name of a file.
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

/// Does what may wait for a disk where nobody else waits for it.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(Failure::new(Step::Store, "the program is about to end")),
    }
}
