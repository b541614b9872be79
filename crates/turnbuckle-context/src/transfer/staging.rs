//! What was checked and is not saved yet, in a file that nobody else can read and that is removed in the end.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::export;
use super::lines::{Line, Lines};
use super::record::Record;
use crate::ContextError;
use crate::database::{make_private_file, make_private_folder};
use crate::memory::new_id;

/// What was put aside and not touched for so long belongs to nobody.
const STALE: Duration = Duration::from_secs(60 * 60);

/// What was put aside so far.
pub(super) struct Staging {
    path: PathBuf,
    file: BufWriter<File>,
}

/// What was put aside, read again.
pub(super) struct Records {
    from: BufReader<File>,
    /// Removes the file in the end.
    _staging: Staging,
}

impl Staging {
    pub(super) fn begin(folder: &Path) -> Result<Self, ContextError> {
        make_private_folder(folder)?;
        remove_stale(folder);
        let path = folder.join(format!("{}.tmp", new_id("import")));
        make_private_file(&path)?;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|error| ContextError::file(&path, error))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
        })
    }

    pub(super) fn write(&mut self, record: &Record) -> Result<(), ContextError> {
        export::write(&mut self.file, record)
    }

    pub(super) fn read(mut self) -> Result<Records, ContextError> {
        let flushed = self.file.flush();
        let file = flushed.and_then(|()| File::open(&self.path));
        let file = file.map_err(|error| ContextError::file(&self.path, error))?;
        Ok(Records {
            from: BufReader::new(file),
            _staging: self,
        })
    }
}

/// Removes what an import left that was killed. One that runs has just written.
fn remove_stale(folder: &Path) {
    let is_stale = |entry: &DirEntry| {
        let name = entry.file_name();
        let is_ours = |name: &str| name.starts_with("import_") && name.ends_with(".tmp");
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        name.to_str().is_some_and(is_ours) && age.is_some_and(|age| age > STALE)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_stale(&entry) {
            // The next import tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Whoever forgets everything removes what could not be removed now.
        let _ = fs::remove_file(&self.path);
    }
}

impl Records {
    pub(super) fn next(&mut self) -> Result<Option<Record>, ContextError> {
        let broken = |error| ContextError::file("what was put aside", error);
        let mut lines = Lines::new(&mut self.from, usize::MAX);
        match lines.next().map_err(broken)? {
            None => Ok(None),
            Some(Line::Whole(line)) => {
                let record = serde_json::from_slice(line);
                record.map(Some).map_err(|error| broken(error.into()))
            }
            Some(Line::TooLong) => Err(broken(std::io::ErrorKind::InvalidData.into())),
        }
    }
}
