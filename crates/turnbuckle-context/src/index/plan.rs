//! What there is to do: the files on the disk compared with those that are known.

use std::{collections::HashMap, ops::ControlFlow, path::Path};

use super::{
    IndexOptions,
    read::ReadJob,
    store::IndexedFile,
    walk::{FoundFile, SkipCounts, WalkResult, walk},
};
use crate::{ContextError, database::now, folder::DirHandle};

/// What there is to do.
#[derive(Debug)]
pub(super) struct IndexPlan {
    /// Files that are new, or may have changed.
    pub(super) jobs: Vec<ReadJob>,
    /// Files that are as they were.
    pub(super) unchanged: u64,
    /// Rows of files that are not there any more, or not wanted.
    pub(super) removed_rows: Vec<i64>,
    pub(super) skipped: SkipCounts,
    pub(super) walk_result: WalkResult,
}

/// Compares. Everything that was read before `read_before` counts as changed.
pub(super) fn plan(
    folder: &DirHandle,
    root: &Path,
    options: &IndexOptions,
    mut indexed: HashMap<String, IndexedFile>,
    read_before: Option<i64>,
    should_continue: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<IndexPlan, ContextError> {
    let mut plan = IndexPlan {
        jobs: Vec::new(),
        unchanged: 0,
        removed_rows: Vec::new(),
        skipped: SkipCounts::new(),
        walk_result: WalkResult::Everything,
    };
    let started = now();
    // What was read in the future was read when the clock was wrong.
    let is_old = |indexed: &IndexedFile| {
        indexed.indexed > started || read_before.is_some_and(|time| indexed.indexed < time)
    };
    let (jobs, unchanged) = (&mut plan.jobs, &mut plan.unchanged);
    let mut on_file = |found: FoundFile| {
        let mut indexed = indexed.remove(&found.path);
        if let Some(indexed) = indexed.as_mut().filter(|indexed| is_old(indexed)) {
            // It keeps its row, which goes if the file cannot be read; but no file is like it.
            indexed.hash.clear();
        }
        let is_same = |indexed: &IndexedFile| {
            !is_old(indexed) && (indexed.size, indexed.modified) == (found.size, found.modified)
        };
        if indexed.as_ref().is_some_and(is_same) {
            *unchanged += 1;
            return;
        }
        jobs.push(ReadJob {
            path: found.path,
            size: found.size,
            previous: indexed.map(|indexed| (indexed.row, indexed.hash)),
        });
    };
    plan.walk_result = walk(
        folder,
        root,
        options,
        &mut plan.skipped,
        should_continue,
        &mut on_file,
    )?;
    // Only a walk that saw everything can tell what is missing.
    if plan.walk_result == WalkResult::Everything {
        plan.removed_rows = indexed.into_values().map(|indexed| indexed.row).collect();
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
        let folder = DirHandle::open(&root).unwrap();
        let indexed = IndexedFile {
            row: 7,
            size: 9,
            modified: 1,
            hash: vec![1],
            indexed: 5,
        };
        let indexed = HashMap::from([("a.rs".to_owned(), indexed)]);
        let options = IndexOptions::default();
        let mut should_continue = || ControlFlow::Continue(());
        let plan = plan(
            &folder,
            &root,
            &options,
            indexed,
            Some(6),
            &mut should_continue,
        )
        .unwrap();
        assert_eq!(plan.jobs[0].previous, Some((7, Vec::new())));
    }
}
