//! A cheap look before a search.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pass::{Ended, Pass, WhenStopped};
use super::store::clean;
use super::tree::Tree;
use crate::folder::Folder;
use crate::{ContextError, Database, Redactor};

/// What a refresh found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refreshed {
    /// The tree as it is now.
    pub tree: Tree,
    /// How true it is.
    pub freshness: Freshness,
    /// Files that were read again.
    pub read: u64,
    /// Files that are gone, or not wanted any more.
    pub removed: u64,
    /// What was taken out of the files, by the rule.
    pub redacted: BTreeMap<Arc<str>, usize>,
}

impl Refreshed {
    /// A tree that was not looked at.
    pub(crate) fn unchecked(tree: Tree) -> Self {
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
    /// [`Tree::refreshed`].
    Unknown,
}

/// Brings a tree up to date as far as a budget of time allows.
///
/// If the budget is over before all files were looked at, nothing changes. Otherwise what is gone is removed, and
/// what has changed is read until the time is over.
pub fn refresh(
    db: &Database,
    tree: &Tree,
    redactor: &Redactor,
    budget: Duration,
) -> Result<Refreshed, ContextError> {
    let folder = super::open(&tree.root)?;
    let mut go_on = || true;
    refresh_folder(db, &folder, tree, redactor, budget, &mut go_on)
}

/// Brings the tree of an open folder up to date like [`refresh`], as long as `go_on` says so.
pub(crate) fn refresh_folder(
    db: &Database,
    folder: &Folder,
    tree: &Tree,
    redactor: &Redactor,
    budget: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Refreshed, ContextError> {
    let begun = Instant::now();
    let root_text = tree.root.to_string_lossy();
    let pass = Pass {
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
    let mut watch = |_| match begun.elapsed() < reading && go_on() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let refreshed = match pass.run(WhenStopped::Show, &mut watch)? {
        Ended::Shown {
            tree,
            done,
            is_complete,
            met_another,
        } => Refreshed {
            freshness: match done.left {
                // Whoever else changed it may have looked before us, or wanted other files.
                _ if met_another => Freshness::Unknown,
                0 if is_complete => Freshness::Fresh,
                0 => Freshness::Unknown,
                left => Freshness::Stale(left),
            },
            read: done.read,
            removed: done.removed,
            redacted: done.redacted,
            tree: *tree,
        },
        Ended::Lost | Ended::Stopped => Refreshed::unchecked(tree.clone()),
    };
    clean(db, &mut || begun.elapsed() < budget)?;
    Ok(refreshed)
}
