//! Opening a file below a folder, and never one that lies elsewhere.

use std::fs::File;
use std::io;
use std::path::Path;

/// A folder that files are opened below.
#[derive(Debug)]
pub(super) struct Root(system::Root);

impl Root {
    /// Holds a folder, given by its canonical path.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        system::Root::new(path).map(Self)
    }

    /// Opens a regular file by its path below the folder. What a symlink leads to, at any place of the path, and what is
    /// no regular file is refused; a pipe is not waited for.
    pub(super) fn open(&self, path: &str) -> io::Result<File> {
        let file = self.0.open(path)?;
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"))
    }
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, open, openat};

    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
    const FILE: OFlags = OFlags::NONBLOCK
        .union(OFlags::NOFOLLOW)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);

    #[derive(Debug)]
    pub(super) struct Root(OwnedFd);

    impl Root {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            Ok(Self(open(path, FOLDER, Mode::empty())?))
        }

        /// Step by step: a folder that was swapped for a symlink is not entered either.
        pub(super) fn open(&self, path: &str) -> io::Result<File> {
            let mut folder = None;
            let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
            for part in parents.split('/').filter(|part| !part.is_empty()) {
                let within = folder.as_ref().unwrap_or(&self.0);
                let flags = FOLDER.union(OFlags::NOFOLLOW);
                folder = Some(openat(within, plain(part)?, flags, Mode::empty())?);
            }
            let within = folder.as_ref().unwrap_or(&self.0);
            Ok(openat(within, plain(name)?, FILE, Mode::empty())?.into())
        }
    }

    fn plain(part: &str) -> io::Result<&str> {
        if matches!(part, "" | "." | "..") {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(part)
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    #[derive(Debug)]
    pub(super) struct Root(PathBuf);

    impl Root {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            path.canonicalize().map(Self)
        }

        pub(super) fn open(&self, path: &str) -> io::Result<File> {
            let path = self.0.join(path);
            // Without links in it a path is its own canonical form.
            if path.canonicalize()? != path.components().collect::<PathBuf>() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            File::open(path)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_below_the_folder_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), "text").unwrap();
        let root = Root::new(folder.path()).unwrap();
        let mut text = String::new();
        root.open("a/b/c")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "text").unwrap();
        symlink(outside.path(), folder.path().join("folder")).unwrap();
        symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
        let root = Root::new(folder.path()).unwrap();
        let name = outside.path().file_name().unwrap().to_str().unwrap();
        for path in [
            "folder/secret",
            "file",
            "..",
            "../x",
            ".",
            "",
            &format!("../{name}/secret"),
        ] {
            assert!(root.open(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert!(Root::new(folder.path()).unwrap().open("pipe").is_err());
    }
}
