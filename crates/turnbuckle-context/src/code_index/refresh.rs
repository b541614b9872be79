//! A cheap look before a search.

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

/// What a refresh found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RefreshReport {
    /// The tree as it is now.
    pub tree: IndexTree,
    /// How true it is.
    pub freshness: Freshness,
    /// Files that were read again.
    pub read: u64,
    /// Files that are gone, or not wanted any more.
    pub removed: u64,
    /// What was taken out of the files, by the rule.
    pub redacted: BTreeMap<Arc<str>, usize>,
}

impl RefreshReport {
    /// A tree that was not looked at.
    pub(crate) fn unchecked(tree: IndexTree) -> Self {
        Self {
            tree,
            freshness: Freshness::Unknown,
            read: 0,
            removed: 0,
            redacted: BTreeMap::new(),
        }
    }
}

/// How true an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// It is as the folder was a moment ago.
    Fresh,
    /// So many files have changed and were not read in time.
    Stale(u64),
    /// There was no time to look at all files, or not all could be looked at; the index is as it was at
    /// [`IndexTree::refreshed`].
    Unknown,
}

/// Brings a tree up to date as far as a budget of time allows.
///
/// If the budget is over before all files were looked at, nothing changes. Otherwise what is gone is removed, and
/// what has changed is read until the time is over.
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

/// Brings the tree of an open folder up to date like [`refresh`], as long as `should_continue` returns `true`.
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
    let mut on_progress = |_| match started.elapsed() < reading && should_continue() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let refreshed = match run.run(OnStop::Publish, &mut on_progress)? {
        IndexRunEnd::Published {
            tree,
            done,
            is_complete,
            conflicted,
        } => RefreshReport {
            freshness: match done.unread {
                // Whoever else changed it may have looked before us, or wanted other files.
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
