//! The state of an index in results, and its background refresh.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    ContextError, Database, DatabaseErrorKind, Owner,
    app_state::AppState,
    code_index,
    code_index::{Freshness, IndexTree},
    mcp::display::{format_time, plural, sanitize},
};

/// Maximum time of a background refresh.
const BACKGROUND_REFRESH_BUDGET: Duration = Duration::from_secs(120);

// The relation of an index to its folder. Unchecked: not all files were compared in time; the index is as of `refreshed_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(in crate::mcp::tools) enum IndexFreshness {
    Fresh,
    Stale,
    Unchecked,
}

// The reason why an index is not updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(in crate::mcp::tools) enum UpdateObstacle {
    QuotaExhausted,
    NotWritable,
    DiskFull,
}

impl UpdateObstacle {
    /// Returns the obstacle if the error means that nothing can be written.
    fn from_error(error: &ContextError) -> Option<Self> {
        match error {
            ContextError::Database { kind, .. } => match kind {
                DatabaseErrorKind::ReadOnly => Some(Self::NotWritable),
                DatabaseErrorKind::Full => Some(Self::DiskFull),
                _ => None,
            },
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::QuotaExhausted => "your quota is exhausted",
            Self::NotWritable => "the data folder of this server is not writable",
            Self::DiskFull => "the disk of this server is full",
        }
    }
}

/// An index after an attempt to update it.
pub(in crate::mcp::tools) struct CurrentIndex {
    pub(in crate::mcp::tools) tree: IndexTree,
    pub(in crate::mcp::tools) freshness: Freshness,
    pub(in crate::mcp::tools) obstacle: Option<UpdateObstacle>,
}

impl CurrentIndex {
    /// Updates an index within a time budget. If nothing can be written, returns the stored index.
    pub(in crate::mcp::tools) fn refresh(
        state: &AppState,
        owner: &Owner,
        database: &Database,
        tree: IndexTree,
        budget: Duration,
    ) -> Result<Self, ContextError> {
        if state.is_over_quota(owner) {
            return Ok(Self::stored(tree, Some(UpdateObstacle::QuotaExhausted)));
        }
        if database.is_read_only() {
            return Ok(Self::stored(tree, Some(UpdateObstacle::NotWritable)));
        }
        let folder = state.data_dir().open_folder(&tree.root)?;
        let (redactor, mut should_continue) = (state.redactor(), || true);
        let refreshed = code_index::refresh_open_dir(
            database,
            &folder,
            &tree,
            redactor,
            budget,
            &mut should_continue,
        );
        match refreshed {
            Ok(refreshed) => Ok(Self {
                tree: refreshed.tree,
                freshness: refreshed.freshness,
                obstacle: None,
            }),
            Err(error) => {
                let Some(obstacle) = UpdateObstacle::from_error(&error) else {
                    return Err(error);
                };
                tracing::warn!(%error, "an index could not be updated");
                Ok(Self::stored(tree, Some(obstacle)))
            }
        }
    }

    /// Returns the index as it is stored, without comparing it with its folder.
    pub(in crate::mcp::tools) fn stored(tree: IndexTree, obstacle: Option<UpdateObstacle>) -> Self {
        Self {
            tree,
            freshness: Freshness::Unknown,
            obstacle,
        }
    }
}

// The state of the index in search results.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::mcp::tools) struct IndexState {
    branch: String,
    files: u64,
    state: IndexFreshness,
    #[serde(skip_serializing_if = "is_zero")]
    stale_files: u64,
    refreshed_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UpdateObstacle")]
    not_updated: Option<UpdateObstacle>,
}

impl IndexState {
    pub(in crate::mcp::tools) fn new(index: &CurrentIndex) -> Self {
        let tree = &index.tree;
        let (state, stale_files) = match index.freshness {
            Freshness::Fresh => (IndexFreshness::Fresh, 0),
            Freshness::Stale(files) => (IndexFreshness::Stale, files),
            Freshness::Unknown => (IndexFreshness::Unchecked, 0),
        };
        Self {
            branch: tree.branch.clone(),
            files: tree.counts.files,
            state,
            stale_files,
            refreshed_at: format_time(tree.refreshed),
            not_updated: index.obstacle,
        }
    }

    /// Returns whether the index can and should be updated.
    pub(in crate::mcp::tools) fn needs_update(&self) -> bool {
        self.state != IndexFreshness::Fresh && self.not_updated.is_none()
    }

    pub(in crate::mcp::tools) fn state(&self) -> IndexFreshness {
        self.state
    }

    /// Returns the text form: `120 files, fresh`, or the time of the last refresh.
    pub(in crate::mcp::tools) fn text(&self) -> String {
        let files = plural(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        let (stale, at) = (self.stale_files, &self.refreshed_at);
        match (self.state, self.not_updated) {
            (IndexFreshness::Fresh, _) => format!("{files}, fresh"),
            (_, Some(obstacle)) => {
                let why = obstacle.text();
                format!("{files}, as of {at}; not updated because {why}")
            }
            (IndexFreshness::Stale, None) => {
                format!("{files}; {stale} changed files are being read")
            }
            (IndexFreshness::Unchecked, None) => format!("{files}, as of {at}; being updated"),
        }
    }
}

// The details of an index in the result of `status`.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::mcp::tools) struct IndexDetails {
    root: String,
    chunks: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    state: IndexState,
}

impl IndexDetails {
    pub(in crate::mcp::tools) fn new(index: &CurrentIndex) -> Self {
        let tree = &index.tree;
        Self {
            root: tree.root.to_string_lossy().into_owned(),
            chunks: tree.counts.chunks,
            left_out: skipped_counts(tree),
            state: IndexState::new(index),
        }
    }

    pub(in crate::mcp::tools) fn text(&self) -> String {
        let Self {
            root,
            chunks,
            state,
            ..
        } = self;
        let root = sanitize(root);
        let reasons = self.left_out.iter();
        let reasons = reasons.map(|(reason, count)| format!("{count} {reason}"));
        let left_out = match reasons.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            reasons => format!(" (skipped: {reasons})"),
        };
        format!("{root}: {}, {chunks} chunks{left_out}", state.text())
    }
}

/// Returns the numbers of skipped files, by reason.
pub(super) fn skipped_counts(tree: &IndexTree) -> BTreeMap<&'static str, u64> {
    let skipped = tree.counts.skipped.iter();
    skipped
        .map(|(reason, count)| (reason.as_str(), *count))
        .collect()
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Starts a background job that reads the files a refresh had no time for.
pub(in crate::mcp::tools) fn refresh_in_background(
    state: &AppState,
    owner: &Owner,
    database: &Arc<Database>,
    tree: IndexTree,
) {
    let Some(job) = state.try_start_job(&tree.root) else {
        return;
    };
    let (state, owner, database) = (state.clone(), owner.clone(), database.clone());
    tokio::spawn(async move {
        let job_owner = owner.clone();
        let work = state.run_long(&owner, move |state, _| {
            let _job = job;
            let folder = state.data_dir().open_folder(&tree.root)?;
            let redactor = state.redactor();
            let mut should_continue = state.quota_watch(&job_owner);
            code_index::refresh_open_dir(
                &database,
                &folder,
                &tree,
                redactor,
                BACKGROUND_REFRESH_BUDGET,
                &mut should_continue,
            )
        });
        if let Err(error) = work.await {
            tracing::warn!(%error, "an index could not be updated");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_disk_are_obstacles() {
        let obstacle = |code: i32| {
            let code = rusqlite::ffi::Error::new(code);
            let error = rusqlite::Error::SqliteFailure(code, None);
            UpdateObstacle::from_error(&ContextError::database("a.db".as_ref(), error))
        };

        assert_eq!(
            obstacle(rusqlite::ffi::SQLITE_READONLY),
            Some(UpdateObstacle::NotWritable)
        );
        assert_eq!(
            obstacle(rusqlite::ffi::SQLITE_FULL),
            Some(UpdateObstacle::DiskFull)
        );
        assert_eq!(obstacle(rusqlite::ffi::SQLITE_CORRUPT), None);
        assert_eq!(UpdateObstacle::from_error(&ContextError::Cancelled), None);
    }
}
