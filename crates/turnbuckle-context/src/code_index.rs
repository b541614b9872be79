//! The index of a repository: which files there are, cut into chunks that can be found.
//!
//! An index is brought up to date by looking at the folder: a file is read again if its size or its time has changed.
//! Readers see the index as it was or as it is, never half of a change, whenever the process ends. Everything is
//! redacted before it is stored.

mod chunk;
mod definitions;
mod generated;
mod language;
mod pool;
mod read;
mod refresh;
mod run;
mod store;
mod tree;
mod walk;

use std::{
    collections::BTreeMap,
    fs::Metadata,
    ops::ControlFlow,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use self::run::{IndexRun, IndexRunEnd, OnStop, RunReport};
pub(crate) use self::{
    refresh::refresh_open_dir,
    tree::{detach_branch, purge_detached},
};
pub use self::{
    refresh::{Freshness, RefreshReport, refresh},
    tree::{IndexTree, TreeCounts, tree_for, trees},
};
use crate::{
    ContextError, Database, Redactor,
    storage::{database::now, dir_handle::DirHandle},
};

/// How often a run is begun again because others changed the same tree.
const MAX_RUNS: usize = 3;

/// Wildcards in one glob. Each of them multiplies what there is to compare.
pub(crate) const MAX_WILDCARDS: usize = 32;

/// Counts the wildcards of a glob.
pub(crate) fn count_wildcards(glob: &str) -> usize {
    glob.matches(['*', '?', '[', '{']).count()
}

/// Which files are indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Globs of files that are wanted; if there are none, all are.
    pub include: Vec<String>,
    /// Globs of files and folders that are not wanted.
    pub exclude: Vec<String>,
    /// Larger files are left out, in bytes.
    pub max_file_size: u64,
    /// Read files again that have not changed.
    pub force: bool,
}

impl IndexOptions {
    /// The largest that [`max_file_size`](Self::max_file_size) may be.
    pub const MAX_FILE_SIZE: u64 = 10 << 20;
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            max_file_size: 1 << 20,
            force: false,
        }
    }
}

/// Why a file is not in the index. What the ignore rules name is not wanted, and not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// It is no text.
    Binary,
    /// It is larger than was asked for, or has more lines than anybody reads.
    #[serde(rename = "huge")]
    TooLarge,
    /// A program wrote it: lock files, packed scripts, what says so at its beginning.
    Generated,
    /// There is nothing in it.
    Empty,
    /// It could not be read.
    Unreadable,
    /// It is a symlink, a pipe, a socket or a device.
    NotAFile,
    /// Its name is not UTF-8, too long, or holds a secret.
    #[serde(rename = "name")]
    InvalidName,
    /// There are more files, deeper folders, or folders with more entries, than are indexed.
    #[serde(rename = "beyond")]
    LimitExceeded,
}

impl SkipReason {
    const ALL: [Self; 8] = [
        Self::Binary,
        Self::TooLarge,
        Self::Generated,
        Self::Empty,
        Self::Unreadable,
        Self::NotAFile,
        Self::InvalidName,
        Self::LimitExceeded,
    ];

    /// The reason in a word, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::TooLarge => "huge",
            Self::Generated => "generated",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not_a_file",
            Self::InvalidName => "name",
            Self::LimitExceeded => "beyond",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// How far an index has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Files that were looked at.
    pub files_done: u64,
    /// How many there are, once that is known.
    pub files_total: Option<u64>,
    /// Chunks that were made.
    pub chunks: u64,
}

/// What indexing did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexReport {
    /// The tree as it is now.
    pub tree: IndexTree,
    /// Files that were read and stored.
    pub read: u64,
    /// Files that were as they had been.
    pub unchanged: u64,
    /// Files that are gone, or not wanted any more.
    pub removed: u64,
    /// What was taken out of the files that were read, by the rule.
    pub redacted: BTreeMap<Arc<str>, usize>,
}

/// Indexes a folder, given by its canonical path, or brings its index up to date.
///
/// `on_progress` receives the progress, about twenty times a second, and may end it; then nothing has changed.
pub fn index(
    db: &Database,
    root: &Path,
    branch: &str,
    options: &IndexOptions,
    redactor: &Redactor,
    on_progress: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
) -> Result<IndexReport, ContextError> {
    let folder = open_dir(root)?;
    index_open_dir(db, &folder, root, branch, options, redactor, on_progress)
}

/// Opens a folder to index it.
pub(crate) fn open_dir(root: &Path) -> Result<DirHandle, ContextError> {
    DirHandle::open(root).map_err(|error| open_error(root, error))
}

/// Says why a folder cannot be opened.
pub(crate) fn open_error(root: &Path, error: std::io::Error) -> ContextError {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => ContextError::invalid(
            "the folder has moved: its path has become a link or a file; give the path of the folder itself",
        ),
        _ => ContextError::file(root, error),
    }
}

/// Indexes an open folder like [`index`]; `root` is its path.
pub(crate) fn index_open_dir(
    db: &Database,
    folder: &DirHandle,
    root: &Path,
    branch: &str,
    options: &IndexOptions,
    redactor: &Redactor,
    on_progress: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
) -> Result<IndexReport, ContextError> {
    let root_text = validate(root, options, redactor)?;
    let started = now();
    store::delete_dead_runs(db, &mut || {
        on_progress(IndexProgress::default()).is_continue()
    })?;
    let is_current = tree::find(db, root_text)?.is_none_or(|tree| tree.is_current);
    let run = IndexRun {
        db,
        folder,
        root,
        root_text,
        branch,
        options,
        settings: &tree::settings(options),
        redactor,
        read_before: (options.force || !is_current).then_some(started),
    };
    let mut all = RunReport::default();
    let mut last = None;
    for _ in 0..MAX_RUNS {
        match run.run(OnStop::Abandon, on_progress)? {
            IndexRunEnd::Stopped => return Err(ContextError::Cancelled),
            IndexRunEnd::Lost => {}
            IndexRunEnd::Published {
                tree,
                done,
                conflicted,
                ..
            } => {
                all.add(&done);
                last = Some(tree);
                // Others may have shown an older state of a file, or one that is not wanted any more.
                if !conflicted {
                    break;
                }
            }
        }
    }
    // What was shown stays, whether or not somebody waits for the rest to be cleaned away.
    store::delete_dead_runs(db, &mut || on_progress(all.progress()).is_continue())?;
    let tree = last.ok_or(ContextError::invalid(
        "other processes index this folder at the same time; try again in a minute",
    ))?;
    Ok(IndexReport {
        tree: *tree,
        read: all.read,
        unchanged: all.unchanged,
        removed: all.removed,
        redacted: all.redacted,
    })
}

fn validate<'r>(
    root: &'r Path,
    options: &IndexOptions,
    redactor: &Redactor,
) -> Result<&'r str, ContextError> {
    // They are kept with the index as they are given.
    let holds_secret = |pattern: &String| !redactor.redact(pattern).findings.is_empty();
    if options
        .include
        .iter()
        .chain(&options.exclude)
        .any(holds_secret)
    {
        return Err(ContextError::invalid(
            "a pattern looks as if it held a secret, and patterns are kept; write `*` in its place",
        ));
    }
    if !(1..=IndexOptions::MAX_FILE_SIZE).contains(&options.max_file_size) {
        return Err(ContextError::invalid(format!(
            "`max_file_size` must be between 1 and {} bytes",
            IndexOptions::MAX_FILE_SIZE
        )));
    }
    root.to_str().ok_or(ContextError::invalid(
        "the path of the folder is not UTF-8, and cannot be kept",
    ))
}

/// When a file was last written, in nanoseconds since 1970.
pub(crate) fn modified_nanos(metadata: &Metadata) -> i64 {
    let nanos = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    };
    metadata.modified().map_or(0, nanos)
}
