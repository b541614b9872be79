//! The state of an index in results, and its background refresh.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Database, Owner,
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
    /// True if updates are disabled because the owner has reached the quota.
    #[serde(skip)]
    is_over_quota: bool,
}

impl IndexState {
    pub(in crate::mcp::tools) fn from_tree(tree: &IndexTree, freshness: Freshness) -> Self {
        let (state, stale_files) = match freshness {
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
            is_over_quota: false,
        }
    }

    /// Sets whether the owner has reached the quota, so that the index is not updated.
    pub(in crate::mcp::tools) fn over_quota(mut self, is_over_quota: bool) -> Self {
        self.is_over_quota = is_over_quota;
        self
    }

    pub(in crate::mcp::tools) fn state(&self) -> IndexFreshness {
        self.state
    }

    /// Returns the text form: `120 files, fresh`, or the time of the last refresh.
    pub(in crate::mcp::tools) fn text(&self) -> String {
        let files = plural(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        let (stale, at) = (self.stale_files, &self.refreshed_at);
        match self.state {
            IndexFreshness::Fresh => format!("{files}, fresh"),
            IndexFreshness::Stale | IndexFreshness::Unchecked if self.is_over_quota => {
                format!("{files}, as of {at}; not updated because your quota is exhausted")
            }
            IndexFreshness::Stale => format!("{files}; {stale} changed files are being read"),
            IndexFreshness::Unchecked => format!("{files}, as of {at}; being updated"),
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
    pub(in crate::mcp::tools) fn from_tree(tree: &IndexTree, freshness: Freshness) -> Self {
        Self {
            root: tree.root.to_string_lossy().into_owned(),
            chunks: tree.counts.chunks,
            left_out: skipped_counts(tree),
            state: IndexState::from_tree(tree, freshness),
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
