//! What is remembered from one command to the next: files that only the user can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::environment::Environment;

/// Returns our folder, if the user has one.
pub(crate) fn folder(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.state_folder();
    folder.map(|folder| folder.join("turnbuckle"))
}

/// Replaces a file as a whole; only the user can read it.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}.tmp", std::process::id()));
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

/// Returns what stands for some words: every change is another one.
pub(crate) fn digest<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for word in words {
        // The length keeps two words from passing for one.
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word);
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(unix)]
fn only_for_the_user(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn only_for_the_user(_: &mut OpenOptions) {}
