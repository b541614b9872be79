//! Quick update of an index before a search.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    run::{IndexRun, IndexRunEnd, OnStop},
    store::delete_dead_runs,
    tree::IndexTree,
};
use crate::{ContextError, Database, Redactor, storage::dir_handle::DirHandle};

/// Result of a refresh.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RefreshReport {
    /// The current tree.
    pub tree: IndexTree,
    /// The relation of the tree to the folder.
    pub freshness: Freshness,
    /// Files read again.
    pub read: u64,
    /// Files removed from the index: deleted on the disk, or excluded now.
    pub removed: u64,
    /// Number of redactions in these files, by rule.
    pub redacted: BTreeMap<Arc<str>, usize>,
}

impl RefreshReport {
    /// Creates the report for a tree that was not compared with its folder.
    fn unchecked(tree: IndexTree) -> Self {
        Self {
            tree,
            freshness: Freshness::Unknown,
            read: 0,
            removed: 0,
            redacted: BTreeMap::new(),
        }
    }
}

/// The relation of an index to its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// The index matched the folder a moment ago.
    Fresh,
    /// This many changed files were not read in time.
    Stale(u64),
    /// Not all files could be compared in time; the index is as of [`IndexTree::refreshed`].
    Unknown,
}

/// Updates a tree within a time budget.
///
/// If the time expires before the walk is complete, nothing changes. Otherwise deleted files are removed, and changed files
/// are read until the time expires.
pub fn refresh(
    db: &Database,
    tree: &IndexTree,
    redactor: &Redactor,
    budget: Duration,
) -> Result<RefreshReport, ContextError> {
    let folder = super::open_dir(&tree.root)?;
    let mut should_continue = || true;
    refresh_open_dir(db, &folder, tree, redactor, budget, &mut should_continue)
}

/// Updates the tree of an open folder like [`refresh`], as long as `should_continue` returns `true`.
pub(crate) fn refresh_open_dir(
    db: &Database,
    folder: &DirHandle,
    tree: &IndexTree,
    redactor: &Redactor,
    budget: Duration,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<RefreshReport, ContextError> {
    let started = Instant::now();
    let root_text = tree.root.to_string_lossy();
    let run = IndexRun {
        db,
        folder,
        root: &tree.root,
        root_text: &root_text,
        branch: &tree.branch,
        options: &tree.options,
        settings: &tree.settings,
        redactor,
        read_before: None,
    };
    // Writing takes time as well.
    let reading = budget.mul_f32(0.7);
    let mut on_progress = |_| {
        if started.elapsed() < reading && should_continue() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let refreshed = match run.run(OnStop::Publish, &mut on_progress)? {
        IndexRunEnd::Published {
            tree,
            done,
            is_complete,
            conflicted,
        } => RefreshReport {
            freshness: match done.unread {
                // The other process may have walked earlier, or with other options.
                _ if conflicted => Freshness::Unknown,
                0 if is_complete => Freshness::Fresh,
                0 => Freshness::Unknown,
                unread => Freshness::Stale(unread),
            },
            read: done.read,
            removed: done.removed,
            redacted: done.redacted,
            tree: *tree,
        },
        IndexRunEnd::Lost | IndexRunEnd::Stopped => RefreshReport::unchecked(tree.clone()),
    };
    delete_dead_runs(db, &mut || started.elapsed() < budget)?;
    Ok(refreshed)
}
