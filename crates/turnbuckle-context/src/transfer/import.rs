//! Reading what was exported.
//!
//! Two passes: first every line is checked, loses its secrets and is put aside; then what was put aside is saved, a
//! little at a time. A line that cannot be used is noticed before anything is changed.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::lines::{Line, Lines};
use super::record::{FORMAT, Header, ItemRecord, Record, VERSION};
use super::staging::{Records, Staging};
use crate::database::{Fault, now};
use crate::memory::{Cleaner, Entry, Kind, Source, check};
use crate::{ContextError, Database, Library, Owner, Project, Redactor};

/// The longest content, all of it written as `\u0000`, and room for the rest.
const LONGEST_LINE: usize = 4 * 1024 * 1024;
const MOST_TOLD: usize = 100;
const MOST_IN_A_REFUSAL: usize = 5;
const LARGEST_VECTOR: u32 = 65_536;

/// How long one transaction may take: others wait for it.
const SLICE: Duration = Duration::from_millis(100);

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
pub struct Imported {
    /// Things that were not there before.
    pub new: u64,
    /// Things that were there, and are newer now.
    pub updated: u64,
    /// Things that were there already.
    pub known: u64,
    /// How many secrets were taken out, by the rule that found them.
    pub redacted: BTreeMap<String, u32>,
    /// How many lines could not be used.
    pub bad: u64,
    /// Lines that could not be used, the first hundred.
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
    library: &Library,
    owner: &Owner,
    redactor: &Redactor,
    options: &ImportOptions,
    from: &mut dyn BufRead,
) -> Result<Imported, ContextError> {
    let into = options.into.as_deref();
    let into = into.map(|path| library.project(owner, path)).transpose()?;
    let mut staging = Staging::begin(&library.folder().join(owner.id()))?;
    let mut imported = Imported::default();
    let mut lines = Lines::new(from, LONGEST_LINE);
    read_header(&mut lines)?;
    let mut cleaner = Cleaner::new(redactor);
    let mut has_place = into.is_some();
    loop {
        let checked = match lines.next().map_err(unreadable)? {
            None => break,
            Some(Line::Whole(b"")) => continue,
            Some(Line::Whole(line)) => checked(line, has_place, &mut cleaner),
            Some(Line::TooLong) => Err(format!("is longer than {LONGEST_LINE} bytes")),
        };
        match checked {
            Ok(record) => {
                has_place |= matches!(record, Record::Project { .. } | Record::Shared);
                staging.write(&record)?;
            }
            Err(reason) => imported.note_bad_line(lines.number, reason),
        }
    }
    imported.redacted = cleaner.found();
    if imported.bad > 0 && !options.skip_bad_lines {
        return Err(imported.refusal());
    }
    let mut keeper = Keeper {
        library,
        owner,
        into,
        imported,
    };
    keeper.keep(staging)?;
    Ok(keeper.imported)
}

fn read_header(lines: &mut Lines<'_>) -> Result<(), ContextError> {
    let header: Option<Header> = match lines.next().map_err(unreadable)? {
        Some(Line::Whole(line)) => serde_json::from_slice(line).ok(),
        _ => None,
    };
    match header {
        Some(header) if header.format == FORMAT && header.version <= VERSION => Ok(()),
        Some(header) if header.format == FORMAT => Err(ContextError::refused(format!(
            "this export has version {}, and {VERSION} is the newest that is known here; use a newer program",
            header.version
        ))),
        _ => Err(ContextError::refused(
            "this is no export: its first line does not say so",
        )),
    }
}

/// A line that can be used, without its secrets; otherwise what is wrong with it.
fn checked(line: &[u8], has_place: bool, cleaner: &mut Cleaner<'_>) -> Result<Record, String> {
    let mut record: Record = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match &mut record {
        Record::Header(_) => return Err("is a second first line".to_owned()),
        Record::Project { root } => {
            Project::remembered(root).map_err(|error| error.to_string())?;
        }
        Record::Shared => {}
        _ if !has_place => return Err("comes before any project".to_owned()),
        Record::Collection { vector_size, .. } => {
            if !(1..=LARGEST_VECTOR).contains(vector_size) {
                return Err(format!("`vector_size` is {vector_size}"));
            }
        }
        Record::Item(item) => clean(item, cleaner)?,
    }
    Ok(record)
}

fn clean(item: &mut ItemRecord, cleaner: &mut Cleaner<'_>) -> Result<(), String> {
    let mut draft = item.draft();
    check(&draft, Source::Export).map_err(|error| error.to_string())?;
    let before = cleaner.count();
    cleaner.draft(&mut draft);
    item.redacted = item.redacted.saturating_add(cleaner.count() - before);
    item.title = draft.title;
    item.body = draft.body;
    item.detail = draft.detail;
    item.tags = draft.tags;
    item.meta = draft.meta;
    Ok(())
}

impl Imported {
    fn note_bad_line(&mut self, line: u64, reason: String) {
        self.bad += 1;
        if self.bad_lines.len() < MOST_TOLD {
            self.bad_lines.push(BadLine { line, reason });
        }
    }

    fn refusal(&self) -> ContextError {
        let told = self.bad_lines.iter().take(MOST_IN_A_REFUSAL);
        let told: Vec<String> = told
            .map(|bad| format!("line {}: {}", bad.line, bad.reason))
            .collect();
        ContextError::refused(format!(
            "nothing was imported, because {} cannot be used: {}",
            match self.bad {
                1 => "a line".to_owned(),
                bad => format!("{bad} lines"),
            },
            told.join("; ")
        ))
    }
}

/// Saves what was put aside.
struct Keeper<'k> {
    library: &'k Library,
    owner: &'k Owner,
    into: Option<Project>,
    imported: Imported,
}

impl Keeper<'_> {
    fn keep(&mut self, staging: Staging) -> Result<(), ContextError> {
        let mut records = staging.read()?;
        let mut next = records.next()?;
        while let Some(record) = next.take() {
            let database = self.place(&record)?;
            // What is of no place in the file goes to the project that takes all in.
            let mut waiting = match record {
                Record::Project { .. } | Record::Shared => records.next()?,
                other => Some(other),
            };
            while waiting.is_some() {
                next = database.write(|db| self.keep_some(db, &mut waiting, &mut records))?;
                database.rest();
            }
        }
        Ok(())
    }

    /// Saves for a moment. Says what it met that belongs elsewhere.
    fn keep_some(
        &mut self,
        db: &Connection,
        waiting: &mut Option<Record>,
        records: &mut Records,
    ) -> Result<Option<Record>, Fault> {
        let begun = Instant::now();
        while begun.elapsed() < SLICE
            && let Some(record) = waiting.take()
        {
            match record {
                Record::Item(item) => self.keep_item(db, *item)?,
                Record::Collection {
                    branch,
                    vector_size,
                } => keep_collection(db, &branch, vector_size)?,
                other => return Ok(Some(other)),
            }
            *waiting = records.next()?;
        }
        Ok(None)
    }

    fn place(&self, record: &Record) -> Result<Arc<Database>, ContextError> {
        match (record, &self.into) {
            (Record::Shared, _) => self.library.shared(self.owner),
            (_, Some(into)) => self.library.open(self.owner, into),
            (Record::Project { root }, None) => {
                let project = Project::remembered(root)?;
                self.library.open(self.owner, &project)
            }
            _ => Err(ContextError::refused(
                "what was put aside was changed by someone",
            )),
        }
    }

    fn keep_item(&mut self, db: &Connection, record: ItemRecord) -> Result<(), Fault> {
        let now = now();
        let mut entry = Entry::new(record.draft(), record.redacted, now);
        entry.item.usage = record.usage;
        entry.item.created = record.created.map_or(now, |time| time.clamp(0, now));
        let updated = record.updated.map_or(now, |time| time.clamp(0, now));
        entry.item.updated = updated.max(entry.item.created);
        if Kind::of_id(&record.id) == Some(record.kind) && is_free(db, &record.id)? {
            entry.item.id = record.id;
        }
        match entry.known(db)? {
            None => self.imported.new += 1,
            Some(known) if known.updated < entry.item.updated => self.imported.updated += 1,
            Some(_) => {
                self.imported.known += 1;
                return Ok(());
            }
        }
        entry.keep(db)?;
        Ok(())
    }
}

fn keep_collection(db: &Connection, branch: &str, vector_size: u32) -> Result<(), Fault> {
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

fn unreadable(error: std::io::Error) -> ContextError {
    ContextError::file("the file to import", error)
}
