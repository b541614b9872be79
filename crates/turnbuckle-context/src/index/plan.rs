//! What there is to do: the files on the disk compared with those that are known.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::IndexOptions;
use super::read::Job;
use super::store::Known;
use super::walk::{Found, Tally, Walked, walk};
use crate::ContextError;

/// What there is to do.
#[derive(Debug)]
pub(super) struct Plan {
    /// Files that are new, or may have changed.
    pub(super) jobs: Vec<Job>,
    /// Files that are as they were.
    pub(super) unchanged: u64,
    /// Rows of files that are not there any more, or not wanted.
    pub(super) vanished: Vec<i64>,
    pub(super) left_out: Tally,
    pub(super) walked: Walked,
}

/// Compares. Everything that was read before `read_before` counts as changed.
pub(super) fn plan(
    root: &Path,
    options: &IndexOptions,
    mut known: HashMap<String, Known>,
    read_before: Option<i64>,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Plan, ContextError> {
    let mut plan = Plan {
        jobs: Vec::new(),
        unchanged: 0,
        vanished: Vec::new(),
        left_out: Tally::new(),
        walked: Walked::Everything,
    };
    let (jobs, unchanged) = (&mut plan.jobs, &mut plan.unchanged);
    let mut see = |found: Found| {
        let known = known.remove(&found.path);
        let is_old = |known: &Known| read_before.is_some_and(|time| known.indexed < time);
        let known = known.filter(|known| !is_old(known));
        let is_same = |known: &Known| (known.size, known.modified) == (found.size, found.modified);
        if known.as_ref().is_some_and(is_same) {
            *unchanged += 1;
            return;
        }
        jobs.push(Job {
            path: found.path,
            size: found.size,
            known: known.map(|known| (known.row, known.hash)),
        });
    };
    plan.walked = walk(root, options, &mut plan.left_out, go_on, &mut see)?;
    // Only a walk that saw everything can tell what is missing.
    if plan.walked == Walked::Everything {
        plan.vanished = known.into_values().map(|known| known.row).collect();
    }
    Ok(plan)
}
