//! What the user agreed to, in a file that only they can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// The definitions that the user agreed to use.
#[derive(Debug)]
pub(crate) struct Memory {
    file: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreed {
    agreed: Vec<Definition>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Definition {
    file: PathBuf,
    digest: String,
}

impl Memory {
    /// Returns what is remembered for this user.
    pub(crate) fn of(environment: &Environment) -> Self {
        let folder = environment.state_folder();
        Self {
            file: folder.map(|folder| folder.join("turnbuckle").join("trust.json")),
        }
    }

    /// Says whether the user agreed to exactly this.
    pub(crate) fn knows(&self, file: &Path, digest: &str) -> bool {
        let mut agreed = self.read().agreed.into_iter();
        agreed.any(|known| known.file == file && known.digest == digest)
    }

    /// Keeps in mind that the user agreed, in place of what they agreed to in this file under the same digest.
    pub(crate) fn remember(&self, file: &Path, digest: &str) -> io::Result<()> {
        let Some(place) = &self.file else {
            return Err(io::Error::other("there is no home folder"));
        };
        let mut all = self.read();
        all.agreed.push(Definition {
            file: file.to_owned(),
            digest: digest.to_owned(),
        });
        write(place, &serde_json::to_vec_pretty(&all)?)
    }

    /// What cannot be read is forgotten: the user is asked again.
    fn read(&self) -> Agreed {
        let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
        let agreed = text.and_then(|text| serde_json::from_slice(&text).ok());
        agreed.unwrap_or_default()
    }
}

/// Replaces a file as a whole; only the user can read it.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".trust.{}.tmp", std::process::id()));
    // One that was left behind by a crash may have other rights.
    let _ = fs::remove_file(&draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    only_for_the_user(&mut options);
    let mut open = options.open(&draft)?;
    let written = open.write_all(bytes).and_then(|()| open.sync_all());
    drop(open);
    let moved = written.and_then(|()| fs::rename(&draft, file));
    if moved.is_err() {
        let _ = fs::remove_file(&draft);
    }
    moved
}

#[cfg(unix)]
fn only_for_the_user(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn only_for_the_user(_: &mut OpenOptions) {}
