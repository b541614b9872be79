//! The folder of the store: reading, atomic replacement, locks and permissions.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use fs4::{FileExt, TryLockError};

use super::{
    Keyring,
    encryption::FileCipher,
    format::{FileEncryption, StoreContents, StoreFile, StoreReadError},
};
use crate::{AuthorizationError, AuthorizationStep};

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The folder and its file. Every method may block on the disk and on the keyring.
pub(super) struct StoreDirectory {
    folder: PathBuf,
    file: PathBuf,
    cipher: FileCipher,
    /// Maximum size of the file, in bytes.
    pub(super) max_bytes: u64,
}

impl StoreDirectory {
    pub(super) fn new(folder: PathBuf, keyring: Option<Arc<dyn Keyring>>) -> StoreDirectory {
        let file = folder.join("logins.json");
        let cipher = FileCipher::new(file.clone(), keyring);
        StoreDirectory {
            folder,
            file,
            cipher,
            max_bytes: MAX_FILE_BYTES,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the encryption of the file, without decrypting it.
    pub(super) fn encryption(&self) -> Result<FileEncryption, AuthorizationError> {
        self.read_file().map(|file| file.encryption())
    }

    /// Reads the contents.
    pub(super) fn read(&self) -> Result<StoreContents, AuthorizationError> {
        self.open(self.read_file()?)
    }

    fn open(&self, file: StoreFile) -> Result<StoreContents, AuthorizationError> {
        match file {
            StoreFile::Plaintext(contents) => Ok(contents),
            StoreFile::Encrypted(encrypted) => self
                .cipher
                .open(&encrypted)?
                .map_err(|error| self.unreadable(error)),
        }
    }

    /// Reads the file; a missing file is empty plaintext.
    fn read_file(&self) -> Result<StoreFile, AuthorizationError> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(StoreFile::Plaintext(StoreContents::empty()));
            }
            Err(error) => return Err(self.failure("cannot be read", &error)),
        };
        private::restrict_folder(&self.folder).map_err(|error| self.permission_error(&error))?;
        private::restrict_file(&file).map_err(|error| self.permission_error(&error))?;
        let mut bytes = Vec::new();
        file.take(self.max_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failure("cannot be read", &error))?;
        if bytes.len() as u64 > self.max_bytes {
            return Err(self.too_long());
        }
        StoreFile::parse(&bytes).map_err(|error| self.unreadable(error))
    }

    /// Reads, changes and writes the file under a lock; the encryption stays the same.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut StoreContents) -> T,
    ) -> Result<T, AuthorizationError> {
        // The keyring may prompt the user, so it is used before the lock is taken.
        self.read()?;
        let _lock = self.lock_for_writing()?;
        let file = self.read_file()?;
        let encryption = file.encryption();
        let mut contents = self.open(file)?;
        let changed = change(&mut contents);
        self.write(&contents, encryption)?;
        Ok(changed)
    }

    /// Changes the encryption of the file under a lock, after checking that it can be decrypted.
    pub(super) fn set_encryption(
        &self,
        encryption: FileEncryption,
    ) -> Result<(), AuthorizationError> {
        self.read()?;
        if encryption == FileEncryption::Encrypted {
            self.cipher.load_key()?;
        }
        let _lock = self.lock_for_writing()?;
        let file = self.read_file()?;
        let is_done = file.encryption() == encryption;
        let contents = self.open(file)?;
        if is_done {
            Ok(())
        } else {
            self.write(&contents, encryption)
        }
    }

    /// Locks a lock file until it is closed; `None` if another process holds the lock.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<File>, AuthorizationError> {
        let file = self.lock_file(name)?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.failure("cannot be locked", &error)),
        }
    }

    /// Waits until a write of another process has finished, which takes long only if that process was stopped.
    fn lock_for_writing(&self) -> Result<File, AuthorizationError> {
        const RETRY_INTERVAL: Duration = Duration::from_millis(10);
        const MAX_ATTEMPTS: usize = 3000;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(lock) = self.try_lock("logins.lock")? {
                return Ok(lock);
            }
            thread::sleep(RETRY_INTERVAL);
        }
        let error = io::Error::from(io::ErrorKind::TimedOut);
        Err(self.failure("is locked by another process", &error))
    }

    /// Opens a lock file. Lock files are never removed: otherwise two processes could each lock their own file.
    fn lock_file(&self, name: &str) -> Result<File, AuthorizationError> {
        private::create_folder(&self.folder).map_err(|error| self.permission_error(&error))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private::owner_only(&mut options);
        options
            .open(self.folder.join(name))
            .map_err(|error| self.failure("cannot be locked", &error))
    }

    fn write(
        &self,
        contents: &StoreContents,
        encryption: FileEncryption,
    ) -> Result<(), AuthorizationError> {
        let bytes = match encryption {
            FileEncryption::Plaintext => contents.to_plaintext(),
            FileEncryption::Encrypted => contents.to_encrypted(&self.cipher.key()?)?,
        };
        if bytes.len() as u64 > self.max_bytes {
            return Err(self.too_long());
        }
        self.replace(&bytes)
            .map_err(|error| self.failure("cannot be written", &error))
    }

    /// Replaces the file atomically, and returns when it is on disk.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.folder.join("logins.json.new");
        // Left over from a crash, with unknown permissions.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private::owner_only(&mut options);
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, &self.file)?;
        private::sync_folder(&self.folder)
    }

    fn failure(&self, what: &str, error: &io::Error) -> AuthorizationError {
        let reason = format!("`{}` {what}: {error}", self.file.display());
        let folder = self.folder.display();
        AuthorizationError::new(AuthorizationStep::Store, reason).with_hint(format!(
            "check that `{folder}` is a folder that you can read and write, and that the disk is not full"
        ))
    }

    fn permission_error(&self, error: &io::Error) -> AuthorizationError {
        let folder = self.folder.display();
        let reason = format!("cannot restrict `{folder}` to its owner: {error}");
        AuthorizationError::new(AuthorizationStep::Store, reason)
            .with_hint("store logins in a folder that belongs to you and is used for nothing else")
    }

    fn unreadable(&self, error: StoreReadError) -> AuthorizationError {
        match error {
            StoreReadError::Damaged(url) => self.damaged(&url),
            StoreReadError::Newer => self.newer(),
        }
    }

    fn too_long(&self) -> AuthorizationError {
        let file = self.file.display();
        let reason = format!("`{file}` must not be larger than {} bytes", self.max_bytes);
        AuthorizationError::new(AuthorizationStep::Store, reason).with_hint(format!(
            "nothing was changed; move `{file}` away and log in again"
        ))
    }

    fn damaged(&self, error: &str) -> AuthorizationError {
        let file = self.file.display();
        AuthorizationError::new(
            AuthorizationStep::Store,
            format!("`{file}` is damaged: {error}"),
        )
        .with_hint(format!(
            "nothing was changed; repair it, or move `{file}` away and log in again"
        ))
    }

    fn newer(&self) -> AuthorizationError {
        let file = self.file.display();
        AuthorizationError::new(
            AuthorizationStep::Store,
            format!("`{file}` was written by a newer version"),
        )
        .with_hint("nothing was changed; use the newer version of the program, or another folder")
    }
}

#[cfg(unix)]
mod private {
    //! File permissions on Unix.

    use std::{
        fs::{self, DirBuilder, File, OpenOptions, Permissions},
        io,
        os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
        path::Path,
    };

    const GROUP_AND_OTHERS: u32 = 0o077;
    const STICKY: u32 = 0o1000;

    pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        restrict_folder(folder)
    }

    pub(super) fn restrict_folder(folder: &Path) -> io::Result<()> {
        let mode = fs::metadata(folder)?.permissions().mode();
        if mode & STICKY != 0 {
            // A shared folder such as `/tmp` must not be restricted.
            return Err(io::Error::other("the folder is shared by several users"));
        }
        match mode & GROUP_AND_OTHERS {
            0 => Ok(()),
            _ => fs::set_permissions(folder, Permissions::from_mode(0o700)),
        }
    }

    pub(super) fn restrict_file(file: &File) -> io::Result<()> {
        let mode = file.metadata()?.permissions().mode();
        match mode & GROUP_AND_OTHERS {
            0 => Ok(()),
            _ => file.set_permissions(Permissions::from_mode(0o600)),
        }
    }

    pub(super) fn owner_only(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// Without it, the rename may be lost in a power failure, and the old token with it.
    pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

#[cfg(not(unix))]
mod private {
    //! On other systems, the location of the folder protects it.

    use std::{
        fs::{self, File, OpenOptions},
        io,
        path::Path,
    };

    pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    pub(super) fn restrict_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn restrict_file(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn owner_only(_: &mut OpenOptions) {}

    pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }
}
