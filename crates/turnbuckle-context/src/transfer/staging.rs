//! What was checked and is not saved yet, in a file that nobody else can read and that is removed in the end.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Seek as _, Write as _},
    path::Path,
};

use super::{
    export,
    leftovers::{self, STAGING_PREFIX},
    lines::{LineReader, ReadLine},
    record::ExportRecord,
};
use crate::{ContextError, database::create_private_dir, locked_file::LockedFile, memory::new_id};

/// What was put aside so far.
pub(super) struct StagingFile {
    /// Locked, so that others can tell it from what a killed import left.
    lock: LockedFile,
    to: BufWriter<File>,
}

/// What was put aside, read again.
pub(super) struct StagedRecords {
    from: BufReader<File>,
    /// Removes the file in the end.
    _staging: StagingFile,
}

impl StagingFile {
    pub(super) fn create(folder: &Path) -> Result<Self, ContextError> {
        create_private_dir(folder)?;
        leftovers::remove_leftovers(folder);
        let failed = |error| ContextError::file(folder, error);
        loop {
            let path = folder.join(format!("{}.tmp", new_id(STAGING_PREFIX)));
            if let Some(lock) = LockedFile::create(&path).map_err(failed)? {
                let to = BufWriter::new(lock.file().try_clone().map_err(failed)?);
                return Ok(Self { lock, to });
            }
        }
    }

    pub(super) fn write(&mut self, record: &ExportRecord) -> Result<(), ContextError> {
        export::write(&mut self.to, record)
    }

    pub(super) fn read(mut self) -> Result<StagedRecords, ContextError> {
        let mut reader = || {
            self.to.flush()?;
            let mut from = self.lock.file().try_clone()?;
            from.rewind()?;
            Ok(BufReader::new(from))
        };
        let from = reader().map_err(staging_error)?;
        Ok(StagedRecords {
            from,
            _staging: self,
        })
    }
}

impl Drop for StagingFile {
    fn drop(&mut self) {
        // The next import or forget removes what cannot be removed now.
        let _ = self.lock.remove();
    }
}

impl StagedRecords {
    pub(super) fn next(&mut self) -> Result<Option<ExportRecord>, ContextError> {
        let mut lines = LineReader::new(&mut self.from, usize::MAX);
        match lines.next().map_err(staging_error)? {
            None => Ok(None),
            Some(ReadLine::Whole(line)) => {
                let record = serde_json::from_slice(line);
                record
                    .map(Some)
                    .map_err(|error| staging_error(error.into()))
            }
            Some(ReadLine::TooLong) => Err(staging_error(std::io::ErrorKind::InvalidData.into())),
        }
    }
}

fn staging_error(error: std::io::Error) -> ContextError {
    ContextError::file("what was put aside", error)
}
