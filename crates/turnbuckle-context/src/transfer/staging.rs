//! What was checked and is not saved yet, in a file that nobody else can read and that is removed in the end.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek as _, Write as _};
use std::path::Path;

use super::export;
use super::leftovers::{self, STAGING_PREFIX};
use super::lines::{Line, Lines};
use super::record::Record;
use crate::ContextError;
use crate::database::make_private_folder;
use crate::locked_file::LockedFile;
use crate::memory::new_id;

/// What was put aside so far.
pub(super) struct Staging {
    /// Locked, so that others can tell it from what a killed import left.
    lock: LockedFile,
    to: BufWriter<File>,
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
        leftovers::remove(folder);
        let failed = |error| ContextError::file(folder, error);
        loop {
            let path = folder.join(format!("{}.tmp", new_id(STAGING_PREFIX)));
            if let Some(lock) = LockedFile::create(&path).map_err(failed)? {
                let to = BufWriter::new(lock.file().try_clone().map_err(failed)?);
                return Ok(Self { lock, to });
            }
        }
    }

    pub(super) fn write(&mut self, record: &Record) -> Result<(), ContextError> {
        export::write(&mut self.to, record)
    }

    pub(super) fn read(mut self) -> Result<Records, ContextError> {
        let mut reader = || {
            self.to.flush()?;
            let mut from = self.lock.file().try_clone()?;
            from.rewind()?;
            Ok(BufReader::new(from))
        };
        let from = reader().map_err(broken)?;
        Ok(Records {
            from,
            _staging: self,
        })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next import or forget removes what cannot be removed now.
        let _ = self.lock.remove();
    }
}

impl Records {
    pub(super) fn next(&mut self) -> Result<Option<Record>, ContextError> {
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

fn broken(error: std::io::Error) -> ContextError {
    ContextError::file("what was put aside", error)
}
