//! What there is to do: the files on the disk compared with those that are known.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::IndexOptions;
use super::read::Job;
use super::store::Known;
use super::walk::{Found, Tally, Walked, walk};
use crate::ContextError;
use crate::database::now;
use crate::folder::Folder;

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
    folder: &Folder,
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
    let begun = now();
    // What was read in the future was read when the clock was wrong.
    let is_old = |known: &Known| {
        known.indexed > begun || read_before.is_some_and(|time| known.indexed < time)
    };
    let (jobs, unchanged) = (&mut plan.jobs, &mut plan.unchanged);
    let mut see = |found: Found| {
        let mut known = known.remove(&found.path);
        if let Some(known) = known.as_mut().filter(|known| is_old(known)) {
            // It keeps its row, which goes if the file cannot be read; but no file is like it.
            known.hash.clear();
        }
        let is_same = |known: &Known| {
            !is_old(known) && (known.size, known.modified) == (found.size, found.modified)
        };
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
    plan.walked = walk(folder, root, options, &mut plan.left_out, go_on, &mut see)?;
    // Only a walk that saw everything can tell what is missing.
    if plan.walked == Walked::Everything {
        plan.vanished = known.into_values().map(|known| known.row).collect();
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_read_again_by_force_keeps_its_row() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        std::fs::write(root.join("a.rs"), "fn a() {}").unwrap();
        let folder = Folder::open(&root).unwrap();
        let known = Known {
            row: 7,
            size: 9,
            modified: 1,
            hash: vec![1],
            indexed: 5,
        };
        let known = HashMap::from([("a.rs".to_owned(), known)]);
        let options = IndexOptions::default();
        let mut go_on = || ControlFlow::Continue(());
        let plan = plan(&folder, &root, &options, known, Some(6), &mut go_on).unwrap();
        assert_eq!(plan.jobs[0].known, Some((7, Vec::new())));
    }
}
