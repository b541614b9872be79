//! Reading what was exported.
//!
//! Two passes: first every line is checked, loses its secrets and is put aside; then what was put aside is saved, a
//! little at a time. A line that cannot be used is noticed before anything is changed.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Seek as _, Write as _},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};

use super::{
    delete,
    delete::STAGING_PREFIX,
    export,
    record::{ExportHeader, ExportRecord, FORMAT, ItemRecord, LineReader, ReadLine, VERSION},
};
use crate::{
    ContextError, DataDir, Database, Owner, Project, Redactor,
    memory::{ItemKind, ItemRedactor, ItemSource, PreparedItem, new_id, validate},
    storage::{
        database::{TransactionError, create_private_dir, now},
        locked_file::LockedFile,
    },
};

/// The longest content, all of it written as `\u0000`, and room for the rest.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
const MAX_REPORTED_BAD_LINES: usize = 100;
const MAX_BAD_LINES_IN_ERROR: usize = 5;
const MAX_VECTOR_SIZE: u32 = 65_536;

/// How long one transaction may take: others wait for it.
const MAX_TRANSACTION_TIME: Duration = Duration::from_millis(100);

/// How to import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// A folder of the project that takes in what is of projects; otherwise each goes where it came from.
    pub into: Option<String>,
    /// Leaves out lines that cannot be used, where otherwise nothing at all is imported.
    pub skip_bad_lines: bool,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportReport {
    /// Things that were not there before.
    pub new: u64,
    /// Things that were there, and are newer now.
    pub updated: u64,
    /// Things that were there already.
    #[serde(rename = "known")]
    pub unchanged: u64,
    /// How many secrets were taken out, by the rule that found them.
    pub redacted: BTreeMap<String, u32>,
    /// How many lines could not be used.
    #[serde(rename = "bad")]
    pub bad_line_count: u64,
    /// The first hundred lines that could not be used.
    pub bad_lines: Vec<BadLine>,
}

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// From 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads what [`export`](super::export) wrote. Secrets are taken out again, and what is there already is not kept twice.
///
/// If a line cannot be used, nothing is changed, unless the options say otherwise. Of two things that are the same, or
/// two skills of one name, the one that was saved last is kept.
pub fn import(
    data_dir: &DataDir,
    owner: &Owner,
    redactor: &Redactor,
    options: &ImportOptions,
    from: &mut dyn BufRead,
) -> Result<ImportReport, ContextError> {
    let into = options.into.as_deref();
    let into = into.map(|path| data_dir.project(owner, path)).transpose()?;
    let mut staging = StagingFile::create(&data_dir.path().join(owner.id()))?;
    let mut imported = ImportReport::default();
    let mut lines = LineReader::new(from, MAX_LINE_BYTES);
    read_header(&mut lines)?;
    let mut item_redactor = ItemRedactor::new(redactor);
    let mut has_target = into.is_some();
    loop {
        let checked = match lines.next().map_err(read_error)? {
            None => break,
            Some(ReadLine::Whole(b"")) => continue,
            Some(ReadLine::Whole(line)) => validate_line(line, has_target, &mut item_redactor),
            Some(ReadLine::TooLong) => Err(format!("is longer than {MAX_LINE_BYTES} bytes")),
        };
        match checked {
            Ok(record) => {
                has_target |= matches!(record, ExportRecord::Project { .. } | ExportRecord::Shared);
                staging.write(&record)?;
            }
            Err(reason) => imported.note_bad_line(lines.number, reason),
        }
    }
    imported.redacted = item_redactor.into_counts();
    if imported.bad_line_count > 0 && !options.skip_bad_lines {
        return Err(imported.bad_lines_error());
    }
    let mut importer = Importer {
        data_dir,
        owner,
        into,
        imported,
    };
    importer.run(staging)?;
    Ok(importer.imported)
}

fn read_header(lines: &mut LineReader<'_>) -> Result<(), ContextError> {
    let header: Option<ExportHeader> = match lines.next().map_err(read_error)? {
        Some(ReadLine::Whole(line)) => serde_json::from_slice(line).ok(),
        _ => None,
    };
    match header {
        Some(header) if header.format == FORMAT && header.version <= VERSION => Ok(()),
        Some(header) if header.format == FORMAT => Err(ContextError::invalid(format!(
            "this export has version {}, and {VERSION} is the newest that is known here; use a newer program",
            header.version
        ))),
        _ => Err(ContextError::invalid(
            "this is no export: its first line does not say so",
        )),
    }
}

/// A line that can be used, without its secrets; otherwise what is wrong with it.
fn validate_line(
    line: &[u8],
    has_target: bool,
    item_redactor: &mut ItemRedactor<'_>,
) -> Result<ExportRecord, String> {
    let mut record: ExportRecord =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match &mut record {
        ExportRecord::Header(_) => return Err("is a second first line".to_owned()),
        ExportRecord::Project { root } => {
            Project::from_stored(root).map_err(|error| error.to_string())?;
        }
        ExportRecord::Shared => {}
        _ if !has_target => return Err("comes before any project".to_owned()),
        ExportRecord::Collection { vector_size, .. } => {
            if !(1..=MAX_VECTOR_SIZE).contains(vector_size) {
                return Err(format!("`vector_size` is {vector_size}"));
            }
        }
        ExportRecord::Item(item) => redact_record(item, item_redactor)?,
    }
    Ok(record)
}

fn redact_record(
    item: &mut ItemRecord,
    item_redactor: &mut ItemRedactor<'_>,
) -> Result<(), String> {
    let mut new_item = item.to_new_item();
    validate(&new_item, ItemSource::Export).map_err(|error| error.to_string())?;
    let before = item_redactor.count();
    item_redactor.redact_item(&mut new_item);
    item.redacted = item.redacted.saturating_add(item_redactor.count() - before);
    item.title = new_item.title;
    item.body = new_item.body;
    item.detail = new_item.detail;
    item.tags = new_item.tags;
    item.meta = new_item.meta;
    Ok(())
}

impl ImportReport {
    fn note_bad_line(&mut self, line: u64, reason: String) {
        self.bad_line_count += 1;
        if self.bad_lines.len() < MAX_REPORTED_BAD_LINES {
            self.bad_lines.push(BadLine { line, reason });
        }
    }

    fn bad_lines_error(&self) -> ContextError {
        let told = self.bad_lines.iter().take(MAX_BAD_LINES_IN_ERROR);
        let told: Vec<String> = told
            .map(|bad| format!("line {}: {}", bad.line, bad.reason))
            .collect();
        ContextError::invalid(format!(
            "nothing was imported, because {} cannot be used: {}",
            match self.bad_line_count {
                1 => "a line".to_owned(),
                bad => format!("{bad} lines"),
            },
            told.join("; ")
        ))
    }
}

/// Saves what was put aside.
struct Importer<'k> {
    data_dir: &'k DataDir,
    owner: &'k Owner,
    into: Option<Project>,
    imported: ImportReport,
}

impl Importer<'_> {
    fn run(&mut self, staging: StagingFile) -> Result<(), ContextError> {
        let mut records = staging.read()?;
        let mut next = records.next()?;
        while let Some(record) = next.take() {
            let database = self.target_database(&record)?;
            // What is of no place in the file goes to the project that takes all in.
            let mut waiting = match record {
                ExportRecord::Project { .. } | ExportRecord::Shared => records.next()?,
                other => Some(other),
            };
            while waiting.is_some() {
                next = database.write(|db| self.import_batch(db, &mut waiting, &mut records))?;
                database.yield_lock();
            }
        }
        Ok(())
    }

    /// Saves for a moment. Says what it met that belongs elsewhere.
    fn import_batch(
        &mut self,
        db: &Connection,
        waiting: &mut Option<ExportRecord>,
        records: &mut StagedRecords,
    ) -> Result<Option<ExportRecord>, TransactionError> {
        let started = Instant::now();
        while started.elapsed() < MAX_TRANSACTION_TIME
            && let Some(record) = waiting.take()
        {
            match record {
                ExportRecord::Item(item) => self.import_item(db, *item)?,
                ExportRecord::Collection {
                    branch,
                    vector_size,
                } => import_collection(db, &branch, vector_size)?,
                other => return Ok(Some(other)),
            }
            *waiting = records.next()?;
        }
        Ok(None)
    }

    fn target_database(&self, record: &ExportRecord) -> Result<Arc<Database>, ContextError> {
        match (record, &self.into) {
            (ExportRecord::Shared, _) => self.data_dir.open_shared(self.owner),
            (_, Some(into)) => self.data_dir.open_project(self.owner, into),
            (ExportRecord::Project { root }, None) => {
                let project = Project::from_stored(root)?;
                self.data_dir.open_project(self.owner, &project)
            }
            _ => Err(ContextError::invalid(
                "what was put aside was changed by someone",
            )),
        }
    }

    fn import_item(&mut self, db: &Connection, record: ItemRecord) -> Result<(), TransactionError> {
        let now = now();
        let mut prepared = PreparedItem::new(record.to_new_item(), record.redacted, now);
        prepared.item.usage = record.usage;
        prepared.item.created = record.created.map_or(now, |time| time.clamp(0, now));
        let updated = record.updated.map_or(now, |time| time.clamp(0, now));
        prepared.item.updated = updated.max(prepared.item.created);
        if ItemKind::from_id(&record.id) == Some(record.kind) && is_free(db, &record.id)? {
            prepared.item.id = record.id;
        }
        match prepared.find_existing(db)? {
            None => self.imported.new += 1,
            Some(known) if known.updated < prepared.item.updated => self.imported.updated += 1,
            Some(_) => {
                self.imported.unchanged += 1;
                return Ok(());
            }
        }
        prepared.store(db)?;
        Ok(())
    }
}

fn import_collection(
    db: &Connection,
    branch: &str,
    vector_size: u32,
) -> Result<(), TransactionError> {
    let insert = "INSERT OR IGNORE INTO collection VALUES (?1, ?2, ?3)";
    db.execute(insert, params![branch, vector_size, now()])?;
    Ok(())
}

fn is_free(db: &Connection, id: &str) -> rusqlite::Result<bool> {
    let taken = db
        .prepare_cached("SELECT 1 FROM item WHERE id = ?1")?
        .exists([id])?;
    Ok(!taken)
}

fn read_error(error: std::io::Error) -> ContextError {
    ContextError::file("the file to import", error)
}

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
        delete::remove_leftovers(folder);
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
