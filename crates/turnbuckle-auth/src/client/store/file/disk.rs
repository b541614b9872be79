//! The folder: read, replaced as a whole, and closed to everybody else.

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
    kept::{FileForm, Kept, Unreadable, Written},
    seal::Seal,
};
use crate::{Failure, Step};

/// More than any user has logins.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The folder, and what is done in it; every function may wait for the disk, and for the keyring.
pub(super) struct Disk {
    folder: PathBuf,
    file: PathBuf,
    seal: Seal,
    /// How long the file may be.
    pub(super) most: u64,
}

impl Disk {
    pub(super) fn new(folder: PathBuf, keyring: Option<Arc<dyn Keyring>>) -> Disk {
        let file = folder.join("logins.json");
        let seal = Seal::new(file.clone(), keyring);
        Disk {
            folder,
            file,
            seal,
            most: MOST_BYTES,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the form of the file, without opening it.
    pub(super) fn form(&self) -> Result<FileForm, Failure> {
        self.written().map(|written| written.form())
    }

    /// Reads what is kept.
    pub(super) fn read(&self) -> Result<Kept, Failure> {
        self.open(self.written()?)
    }

    fn open(&self, written: Written) -> Result<Kept, Failure> {
        match written {
            Written::Plain(kept) => Ok(kept),
            Written::Sealed(sealed) => self.seal.open(&sealed)?.map_err(|why| self.unreadable(why)),
        }
    }

    /// Reads the file; nothing is kept where there is none yet.
    fn written(&self) -> Result<Written, Failure> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Written::Plain(Kept::nothing()));
            }
            Err(error) => return Err(self.failure("cannot be read", &error)),
        };
        private::close_folder(&self.folder).map_err(|error| self.open_to_others(&error))?;
        private::close_file(&file).map_err(|error| self.open_to_others(&error))?;
        let mut bytes = Vec::new();
        file.take(self.most + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failure("cannot be read", &error))?;
        if bytes.len() as u64 > self.most {
            return Err(self.too_long());
        }
        Written::parse(&bytes).map_err(|why| self.unreadable(why))
    }

    /// Reads, changes and writes while nobody else does; the file stays in its form.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> Result<T, Failure> {
        // A keyring may ask the user first: nobody has to wait for that at the lock.
        self.read()?;
        let _lock = self.lock_for_writing()?;
        let written = self.written()?;
        let form = written.form();
        let mut kept = self.open(written)?;
        let changed = change(&mut kept);
        self.write(&kept, form)?;
        Ok(changed)
    }

    /// Brings the file into a form while nobody else writes; that it can be opened is known then.
    pub(super) fn keep_as(&self, form: FileForm) -> Result<(), Failure> {
        self.read()?;
        if form == FileForm::Sealed {
            self.seal.find()?;
        }
        let _lock = self.lock_for_writing()?;
        let written = self.written()?;
        let is_done = written.form() == form;
        let kept = self.open(written)?;
        match is_done {
            true => Ok(()),
            false => self.write(&kept, form),
        }
    }

    /// Locks a file of this name until it is closed; nothing if somebody else has.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<File>, Failure> {
        let file = self.lock_file(name)?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.failure("cannot be locked", &error)),
        }
    }

    /// Waits for the time of one write, which is short, unless somebody was stopped in the middle of it.
    fn lock_for_writing(&self) -> Result<File, Failure> {
        const PAUSE: Duration = Duration::from_millis(10);
        const MOST_PAUSES: usize = 3000;
        for _ in 0..MOST_PAUSES {
            if let Some(lock) = self.try_lock("logins.lock")? {
                return Ok(lock);
            }
            thread::sleep(PAUSE);
        }
        let error = io::Error::from(io::ErrorKind::TimedOut);
        Err(self.failure("is locked by another process", &error))
    }

    /// Lock files stay: whoever removed one would let two hold the lock, each of its own file.
    fn lock_file(&self, name: &str) -> Result<File, Failure> {
        private::make_folder(&self.folder).map_err(|error| self.open_to_others(&error))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private::only_for_the_user(&mut options);
        options
            .open(self.folder.join(name))
            .map_err(|error| self.failure("cannot be locked", &error))
    }

    fn write(&self, kept: &Kept, form: FileForm) -> Result<(), Failure> {
        let bytes = match form {
            FileForm::Plain => kept.plain(),
            FileForm::Sealed => kept.sealed(&self.seal.key()?)?,
        };
        if bytes.len() as u64 > self.most {
            return Err(self.too_long());
        }
        self.replace(&bytes)
            .map_err(|error| self.failure("cannot be written", &error))
    }

    /// Replaces the file as a whole, and returns when it is on the disk.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let draft = self.folder.join("logins.json.new");
        // Left behind by a crash; whose rights it has, nobody knows.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private::only_for_the_user(&mut options);
        let mut file = options.open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&draft, &self.file)?;
        private::sync_folder(&self.folder)
    }

    fn failure(&self, what: &str, error: &io::Error) -> Failure {
        let reason = format!("`{}` {what}: {error}", self.file.display());
        let folder = self.folder.display();
        Failure::new(Step::Store, reason).cure(format!(
            "see that `{folder}` is a folder that you may read and write, on a disk that is not full"
        ))
    }

    fn open_to_others(&self, error: &io::Error) -> Failure {
        let folder = self.folder.display();
        let reason = format!("`{folder}` cannot be closed to other users: {error}");
        Failure::new(Step::Store, reason)
            .cure("keep logins in a folder that belongs to you, and to nothing else")
    }

    fn unreadable(&self, why: Unreadable) -> Failure {
        match why {
            Unreadable::Damaged(place) => self.damaged(&place),
            Unreadable::Newer => self.newer(),
        }
    }

    fn too_long(&self) -> Failure {
        let file = self.file.display();
        let reason = format!("`{file}` cannot have more than {} bytes", self.most);
        Failure::new(Step::Store, reason).cure(format!(
            "nothing was changed; move `{file}` away and log in again"
        ))
    }

    fn damaged(&self, why: &str) -> Failure {
        let file = self.file.display();
        Failure::new(Step::Store, format!("`{file}` cannot be understood: {why}")).cure(format!(
            "nothing was changed; repair it, or move `{file}` away and log in again"
        ))
    }

    fn newer(&self) -> Failure {
        let file = self.file.display();
        Failure::new(Step::Store, format!("`{file}` is of a newer version"))
            .cure("nothing was changed; use the newer program, or another folder")
    }
}

#[cfg(unix)]
mod private {
    //! Rights of files, where there are users.

    use std::{
        fs::{self, DirBuilder, File, OpenOptions, Permissions},
        io,
        os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
        path::Path,
    };

    const EVERYBODY_ELSE: u32 = 0o077;
    const STICKY: u32 = 0o1000;

    pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
        close_folder(folder)
    }

    pub(super) fn close_folder(folder: &Path) -> io::Result<()> {
        let mode = fs::metadata(folder)?.permissions().mode();
        if mode & STICKY != 0 {
            // As `/tmp` is: closing it would lock out everybody.
            return Err(io::Error::other("the folder is one that users share"));
        }
        match mode & EVERYBODY_ELSE {
            0 => Ok(()),
            _ => fs::set_permissions(folder, Permissions::from_mode(0o700)),
        }
    }

    pub(super) fn close_file(file: &File) -> io::Result<()> {
        let mode = file.metadata()?.permissions().mode();
        match mode & EVERYBODY_ELSE {
            0 => Ok(()),
            _ => file.set_permissions(Permissions::from_mode(0o600)),
        }
    }

    pub(super) fn only_for_the_user(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// Without it, the new name of a file may be lost in a power cut, and the old token with it.
    pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

#[cfg(not(unix))]
mod private {
    //! Elsewhere the folder of a user is closed to others by its place.

    use std::{
        fs::{self, File, OpenOptions},
        io,
        path::Path,
    };

    pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    pub(super) fn close_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn close_file(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn only_for_the_user(_: &mut OpenOptions) {}

    pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }
}
