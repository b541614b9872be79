//! The index of a repository: its files, split into searchable chunks.
//!
//! An update walks the folder and reads a file again if its size or modification time changed. Readers see the index before
//! or after an update, never a partial one, even if the process is killed. All text is redacted before it is stored.

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

use self::run::{IndexRun, IndexRunEnd, IndexRunReport, OnStop};
pub use self::{
    refresh::Freshness,
    tree::{IndexTree, tree_for, trees},
};
pub(crate) use self::{
    refresh::refresh_open_dir,
    tree::{DeletedCounts, detach_branch, purge_detached},
};
#[cfg(feature = "evaluation")]
pub use self::{
    refresh::{RefreshReport, refresh},
    tree::TreeCounts,
};
use crate::{
    ContextError, Database, Redactor,
    storage::{database::now, dir_handle::DirHandle},
};

/// Maximum number of runs of one update. A run is repeated if another process changed the same tree.
const MAX_RUNS: usize = 3;

/// Maximum number of wildcards in one glob. Each multiplies the number of comparisons.
pub(crate) const MAX_WILDCARDS: usize = 32;

/// Returns the number of wildcards in a glob.
pub(crate) fn count_wildcards(glob: &str) -> usize {
    glob.matches(['*', '?', '[', '{']).count()
}

/// Selects the files to index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Globs of files to include; all files if empty.
    pub include: Vec<String>,
    /// Globs of files and folders to exclude.
    pub exclude: Vec<String>,
    /// Maximum size of a file in bytes; larger files are skipped.
    pub max_file_size: u64,
    /// True to read unchanged files again.
    pub force: bool,
}

impl IndexOptions {
    /// The maximum of [`max_file_size`](Self::max_file_size).
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

/// The reason why a file is not in the index. Files excluded by ignore rules are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// The file is not text.
    Binary,
    /// The file exceeds the size limit or the maximum number of lines.
    #[serde(rename = "huge")]
    TooLarge,
    /// The file is generated: a lock file, a minified script, or a file with a generator comment at its start.
    Generated,
    /// The file is empty.
    Empty,
    /// The file could not be read.
    Unreadable,
    /// The entry is a symlink, a pipe, a socket or a device.
    NotAFile,
    /// The path is not UTF-8, too long, or contains a secret.
    #[serde(rename = "name")]
    InvalidName,
    /// A limit is exceeded: number of files, depth of folders, or entries per folder.
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

    /// Returns the stored form of the reason.
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

/// Progress of an index run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Files processed so far.
    pub files_done: u64,
    /// Total number of files, once known.
    pub files_total: Option<u64>,
    /// Chunks created so far.
    pub chunks: u64,
}

/// Result of indexing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexReport {
    /// The current tree.
    pub tree: IndexTree,
    /// Files read and stored.
    pub read: u64,
    /// Unchanged files.
    pub unchanged: u64,
    /// Files removed from the index: deleted on the disk, or excluded now.
    pub removed: u64,
    /// Number of secrets redacted in the files read, by rule.
    pub redacted: BTreeMap<Arc<str>, usize>,
}

/// Indexes a folder, given by its canonical path, or updates its index.
///
/// `on_progress` receives the progress about twenty times a second. If it returns `Break`, indexing stops and the index is
/// unchanged.
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

/// Opens a folder for indexing.
pub(crate) fn open_dir(root: &Path) -> Result<DirHandle, ContextError> {
    DirHandle::open(root).map_err(|error| open_error(root, error))
}

/// Returns the error for a folder that cannot be opened.
pub(crate) fn open_error(root: &Path, error: std::io::Error) -> ContextError {
    match error.kind() {
        std::io::ErrorKind::InvalidInput => ContextError::invalid(
            "the folder was moved: its path is now a link or a file; pass the path of the folder itself",
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
    let mut all = IndexRunReport::default();
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
                // Another process may have published an older version of a file, or a file that is excluded now.
                if !conflicted {
                    break;
                }
            }
        }
    }
    // The published tree stays, even if the caller cancels this cleanup.
    store::delete_dead_runs(db, &mut || on_progress(all.progress()).is_continue())?;
    let tree = last.ok_or(ContextError::invalid(
        "other processes are indexing this folder; try again in a minute",
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
    // Patterns are stored unredacted with the index.
    let holds_secret = |pattern: &String| !redactor.redact(pattern).findings.is_empty();
    if options
        .include
        .iter()
        .chain(&options.exclude)
        .any(holds_secret)
    {
        return Err(ContextError::invalid(
            "a pattern seems to contain a secret, and patterns are stored; write `*` instead of the secret",
        ));
    }
    if !(1..=IndexOptions::MAX_FILE_SIZE).contains(&options.max_file_size) {
        return Err(ContextError::invalid(format!(
            "`max_file_size` must be an integer from 1 to {} (bytes)",
            IndexOptions::MAX_FILE_SIZE
        )));
    }
    root.to_str().ok_or(ContextError::invalid(
        "the path of the folder is not UTF-8 and cannot be stored",
    ))
}

/// Returns the modification time of a file in nanoseconds since 1970.
pub(crate) fn modified_nanos(metadata: &Metadata) -> i64 {
    let nanos = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    };
    metadata.modified().map_or(0, nanos)
}
