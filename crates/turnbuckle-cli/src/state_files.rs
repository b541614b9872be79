//! State that is stored between commands, in files that only the user can read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::environment::Environment;

/// Returns the state directory of this program.
pub(crate) fn dir(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.state_dir();
    folder.map(|folder| folder.join("turnbuckle"))
}

/// Replaces a file atomically; only the user can read it.
pub(crate) fn write_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    // A file that is left from a crash may have other permissions.
    let _ = fs::remove_file(&temporary);
    let mut open = create_private(&temporary)?;
    let written = open.write_all(bytes).and_then(|()| open.sync_all());
    drop(open);
    let renamed = written.and_then(|()| fs::rename(&temporary, file));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// Creates a new file that only the user can read.
pub(crate) fn create_private(file: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    set_private_mode(&mut options);
    options.open(file)
}

/// Returns a digest of a list of words.
pub(crate) fn digest<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for word in words {
        // The length keeps `ab c` apart from `a bc`.
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word);
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(unix)]
fn set_private_mode(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn set_private_mode(_: &mut OpenOptions) {}
