//! Import of exported data.
//!
//! The import has two passes. The first validates and redacts every line and writes it to a staging file; the second saves the
//! staged records in small transactions. So invalid lines are found before any data changes.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Seek as _, Write as _},
    path::Path,
};

use turnbuckle_protocol::json;

use super::{
    DataLocation, delete,
    delete::STAGING_PREFIX,
    export,
    record::{ExportHeader, ExportRecord, FORMAT, ItemRecord, LineReader, ReadLine, VERSION},
};
use crate::{
    ContextError, Owner, Project, Redactor,
    memory::{ItemRedactor, ItemSource, PreparedItem, new_id, validate},
    memory_store::{ImportEntry, MemoryStore, Partition, block_on},
    storage::{
        database::{create_private_dir, now},
        locked_file::LockedFile,
    },
};

/// Maximum length of a line: the longest content with every byte escaped as `\u0000`, and space for the rest.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
const MAX_REPORTED_BAD_LINES: usize = 100;
const MAX_BAD_LINES_IN_ERROR: usize = 5;
const MAX_VECTOR_SIZE: u32 = 65_536;

/// Options of an import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// A folder of the project that receives the items of all projects. By default items return to their own projects.
    pub into: Option<String>,
    /// True to skip invalid lines. By default an invalid line prevents the import.
    pub skip_bad_lines: bool,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportReport {
    /// New items.
    pub new: u64,
    /// Existing items that were updated.
    pub updated: u64,
    /// Existing items that are as new as the imported ones.
    #[serde(rename = "known")]
    pub unchanged: u64,
    /// Number of redactions, by rule.
    pub redacted: BTreeMap<String, u32>,
    /// Number of invalid lines.
    #[serde(rename = "bad")]
    pub bad_line_count: u64,
    /// The first hundred invalid lines.
    pub bad_lines: Vec<BadLine>,
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// Counted from 1.
    pub line: u64,
    /// The reason.
    pub reason: String,
}

/// Imports the output of [`export`](super::export). Items are redacted again, and duplicates are not stored twice.
///
/// If a line is invalid, nothing changes, unless the options allow it. Of two duplicates, or two skills with the same name, the
/// one that was saved last is kept. Call it on a thread that may block.
pub fn import<'d>(
    data: impl Into<DataLocation<'d>>,
    owner: &Owner,
    redactor: &Redactor,
    options: &ImportOptions,
    from: &mut dyn BufRead,
) -> Result<ImportReport, ContextError> {
    let data = data.into();
    let data_dir = data.data_dir;
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
    let store = data.store();
    let mut importer = Importer {
        store: store.as_dyn(),
        owner,
        into,
        imported,
    };
    importer.run(staging)?;
    Ok(importer.imported)
}

fn read_header(lines: &mut LineReader<'_>) -> Result<(), ContextError> {
    let header: Option<ExportHeader> = match lines.next().map_err(read_error)? {
        Some(ReadLine::Whole(line)) => json::from_slice(line).ok(),
        _ => None,
    };
    match header {
        Some(header) if header.format == FORMAT && header.version <= VERSION => Ok(()),
        Some(header) if header.format == FORMAT => Err(ContextError::invalid(format!(
            "the export has version {}; this program supports versions up to {VERSION}: use a newer program",
            header.version
        ))),
        _ => Err(ContextError::invalid(
            "this is not an export: the first line is not a header",
        )),
    }
}

/// Parses, validates and redacts a line. Fails with the reason.
fn validate_line(
    line: &[u8],
    has_target: bool,
    item_redactor: &mut ItemRedactor<'_>,
) -> Result<ExportRecord, String> {
    let mut record: ExportRecord = json::from_slice(line).map_err(|error| error.to_string())?;
    match &mut record {
        ExportRecord::Header(_) => return Err("is a second header".to_owned()),
        ExportRecord::Project { root } => {
            Project::from_stored(root).map_err(|error| error.to_string())?;
        }
        ExportRecord::Shared => {}
        _ if !has_target => return Err("comes before the first project".to_owned()),
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
        let reasons = self.bad_lines.iter().take(MAX_BAD_LINES_IN_ERROR);
        let reasons: Vec<String> = reasons
            .map(|bad| format!("line {}: {}", bad.line, bad.reason))
            .collect();
        ContextError::invalid(format!(
            "nothing was imported, because {} invalid: {}",
            match self.bad_line_count {
                1 => "a line is".to_owned(),
                bad => format!("{bad} lines are"),
            },
            reasons.join("; ")
        ))
    }
}

/// Saves staged records.
struct Importer<'k> {
    store: &'k dyn MemoryStore,
    owner: &'k Owner,
    into: Option<Project>,
    imported: ImportReport,
}

impl Importer<'_> {
    fn run(&mut self, staging: StagingFile) -> Result<(), ContextError> {
        let mut records = staging.read()?;
        let mut next = records.next()?;
        while let Some(record) = next.take() {
            let partition = self.create_partition(&record)?;
            // A record before the first project belongs to the project in the options.
            let mut waiting = match record {
                ExportRecord::Project { .. } | ExportRecord::Shared => None,
                other => Some(other),
            };
            let mut entries = std::iter::from_fn(|| {
                match waiting
                    .take()
                    .map_or_else(|| records.next(), |first| Ok(Some(first)))
                {
                    Ok(Some(ExportRecord::Item(item))) => Some(Ok(import_entry(*item))),
                    Ok(Some(ExportRecord::Collection {
                        branch,
                        vector_size,
                    })) => Some(Ok(ImportEntry::Collection {
                        label: branch,
                        vector_size,
                    })),
                    // It belongs to another partition, or there is none.
                    Ok(other) => {
                        next = other;
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            });
            let counts = block_on(self.store.import(&partition, &mut entries))?;
            self.imported.new += counts.new;
            self.imported.updated += counts.updated;
            self.imported.unchanged += counts.unchanged;
        }
        Ok(())
    }

    /// Creates the partition that a record belongs to.
    fn create_partition(&self, record: &ExportRecord) -> Result<Partition, ContextError> {
        let project = match (record, &self.into) {
            (ExportRecord::Shared, _) => return Ok(Partition::shared(self.owner)),
            (_, Some(into)) => into,
            (ExportRecord::Project { root }, None) => &Project::from_stored(root)?,
            _ => {
                return Err(ContextError::invalid(
                    "the staging file was modified during the import; try again",
                ));
            }
        };
        let partition = Partition::project(self.owner, project.id());
        let root = project.root().to_string_lossy();
        block_on(self.store.create_project(&partition, &root))?;
        Ok(partition)
    }
}

/// Returns the item to import, with the times of the export.
fn import_entry(record: ItemRecord) -> ImportEntry {
    let now = now();
    let mut prepared = PreparedItem::new(record.to_new_item(), record.redacted, now);
    prepared.item.usage = record.usage;
    prepared.item.created = record.created.map_or(now, |time| time.clamp(0, now));
    let updated = record.updated.map_or(now, |time| time.clamp(0, now));
    prepared.item.updated = updated.max(prepared.item.created);
    ImportEntry::Item {
        item: Box::new(prepared),
        id: Some(record.id),
    }
}

fn read_error(error: std::io::Error) -> ContextError {
    ContextError::file("the file to import", error)
}

/// Validated records that are not saved yet, in a private file that is removed on drop.
pub(super) struct StagingFile {
    /// The lock distinguishes the file from leftovers of killed imports.
    lock: LockedFile,
    to: BufWriter<File>,
}

/// Reads the records of a staging file.
pub(super) struct StagedRecords {
    from: BufReader<File>,
    /// Removes the file on drop.
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
        // If this fails, the next import or deletion removes the file.
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
    ContextError::file("the staging file", error)
}
