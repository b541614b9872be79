//! What people do with their data: take it along, bring it back, look at how much it is, have it forgotten.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use crate::Redactor;
use crate::memory::Kind;
use crate::{ContextError, Library, Owner};

/// Which part of an owner's data is meant.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Part {
    /// All projects and what they share.
    #[default]
    Everything,
    /// One project, by its id.
    Project(String),
    /// What projects share.
    Shared,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    /// Projects, and what they share as one more.
    pub places: u64,
    /// Checkpoints, remediations and skills.
    pub items: u64,
}

/// How to import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The root of the project that takes everything in; otherwise each thing goes where it came from.
    pub into: Option<String>,
    /// Leaves out lines that cannot be used, where otherwise nothing at all is imported.
    pub skip_bad_lines: bool,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    /// Things that were not there before.
    pub new: u64,
    /// Things that were there already.
    pub known: u64,
    /// How many secrets were taken out, by the rule that found them.
    pub redacted: BTreeMap<String, u32>,
    /// Lines that could not be used, the first hundred.
    pub bad_lines: Vec<BadLine>,
    /// How many lines could not be used.
    pub bad: u64,
}

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// From 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// How much is kept of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Each project, and what they share, by root.
    pub places: Vec<PlaceStats>,
}

/// How much is kept of a project, or of what projects share.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlaceStats {
    /// The id of the project; nothing for what projects share.
    pub project: Option<String>,
    /// The folder of the project.
    pub root: Option<String>,
    /// How many things, by kind.
    pub items: BTreeMap<&'static str, u64>,
    /// Indexed files.
    pub files: u64,
    /// Chunks of those files.
    pub chunks: u64,
    /// On the disk.
    pub bytes: u64,
    /// When something was last saved; milliseconds since 1970.
    pub newest: Option<i64>,
}

/// What shall be forgotten.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forget {
    /// One thing, by its id, wherever it is.
    Item(String),
    /// The things of one kind, or of all, that were last saved before a time, or whenever.
    Items {
        /// Where.
        part: Part,
        /// Only this kind.
        kind: Option<Kind>,
        /// Only what was last saved before; milliseconds since 1970.
        before: Option<i64>,
    },
    /// Whole files, with memory and index.
    All(Part),
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Forgotten {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Database files that were removed altogether.
    pub files: u64,
    /// Whether no trace is left in the files. Another process that reads at the same time can delay that.
    pub traceless: bool,
}

/// Writes an owner's memory as JSON Lines; the format is described in `docs/context-data.md`.
pub fn export(
    library: &Library,
    owner: &Owner,
    part: &Part,
    to: &mut dyn Write,
) -> Result<Exported, ContextError> {
    let _ = (library, owner, part, to);
    Err(ContextError::refused("not built yet"))
}

/// Reads what [`export`] wrote. Secrets are taken out again, and what is there already is not kept twice.
pub fn import(
    library: &Library,
    owner: &Owner,
    redactor: &Redactor,
    options: &ImportOptions,
    from: &mut dyn BufRead,
) -> Result<Imported, ContextError> {
    let _ = (library, owner, redactor, options, from);
    Err(ContextError::refused("not built yet"))
}

/// Says how much is kept.
pub fn stats(library: &Library, owner: &Owner) -> Result<Stats, ContextError> {
    let _ = (library, owner);
    Err(ContextError::refused("not built yet"))
}

/// Forgets, so that nothing of it is left in the files.
pub fn forget(library: &Library, owner: &Owner, what: &Forget) -> Result<Forgotten, ContextError> {
    let _ = (library, owner, what);
    Err(ContextError::refused("not built yet"))
}
