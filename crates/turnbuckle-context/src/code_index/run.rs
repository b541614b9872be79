//! One index run: compares the folder with the index, reads changed files, writes them and publishes the result.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    IndexOptions, IndexProgress,
    pool::{NextResult, ReadPool, ReadResults},
    read::{PreparedFile, ReadJob, ReadOutcome},
    store,
    store::{IndexedFile, RunLost, TreeChange},
    tree,
    tree::IndexTree,
    walk::{FoundFile, SkipCounts, WalkResult, count_skip, walk},
};
use crate::{
    ContextError, Database, Redactor,
    storage::{database::now, dir_handle::DirHandle},
};

/// Amount of text written in one transaction. Other writers wait for the transaction.
const BATCH_BYTES: usize = 512 << 10;
const BATCH_FILES: usize = 256;
/// Number of modification times written in one transaction.
const BATCH_TOUCHES: usize = 2_000;
/// Interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between heartbeats of a run that waits for a slow disk.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Interval between updates of the refresh time of an unchanged tree, in milliseconds.
const UNCHANGED_NOTE_MS: i64 = 5_000;

/// An index run.
pub(super) struct IndexRun<'a> {
    pub(super) db: &'a Database,
    /// The open folder. Its path may lead to another folder at any time.
    pub(super) folder: &'a DirHandle,
    pub(super) root: &'a Path,
    /// The root as stored.
    pub(super) root_text: &'a str,
    pub(super) branch: &'a str,
    pub(super) options: &'a IndexOptions,
    pub(super) settings: &'a str,
    pub(super) redactor: &'a Redactor,
    /// Files read before this time are read again.
    pub(super) read_before: Option<i64>,
}

/// Counts of an index run.
#[derive(Debug, Default)]
pub(super) struct IndexRunReport {
    pub(super) read: u64,
    pub(super) chunks: u64,
    pub(super) unchanged: u64,
    pub(super) removed: u64,
    /// Changed files that were not read in time.
    pub(super) unread: u64,
    pub(super) redacted: BTreeMap<Arc<str>, usize>,
}

impl IndexRunReport {
    /// Returns the progress of a finished run.
    pub(super) fn progress(&self) -> IndexProgress {
        let files = self.read + self.unchanged;
        IndexProgress {
            files_done: files,
            files_total: Some(files),
            chunks: self.chunks,
        }
    }

    /// Adds the counts of a repeated run, in which the files read by this run are unchanged.
    pub(super) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.chunks += other.chunks;
        self.removed += other.removed;
        self.unchanged = other.unchanged.saturating_sub(self.read - other.read);
        self.unread = other.unread;
        add_counts(&mut self.redacted, &other.redacted);
    }
}

/// The end of an index run.
#[derive(Debug)]
pub(super) enum IndexRunEnd {
    /// The tree matches the folder, except for unread files.
    Published {
        tree: Box<IndexTree>,
        done: IndexRunReport,
        /// True if the whole folder was walked.
        is_complete: bool,
        conflicted: bool,
    },
    /// Another process declared the run dead.
    Lost,
    /// The run was stopped before the walk was complete.
    Stopped,
}

/// Selects what happens to prepared files if the run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnStop {
    /// Publish them: each file is consistent by itself.
    Publish,
    /// Discard them.
    Abandon,
}

impl IndexRun<'_> {
    /// Walks the folder and updates the tree.
    pub(super) fn run(
        &self,
        on_stop: OnStop,
        on_progress: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<IndexRunEnd, ContextError> {
        let before = tree::find(self.db, self.root_text)?;
        let indexed = match &before {
            Some(tree) => store::indexed_files(self.db, tree.id)?,
            None => HashMap::new(),
        };
        let mut should_continue = || on_progress(IndexProgress::default());
        let mut plan = plan(
            self.folder,
            self.root,
            self.options,
            indexed,
            self.read_before,
            &mut should_continue,
        )?;
        if plan.walk_result == WalkResult::Stopped {
            return Ok(IndexRunEnd::Stopped);
        }
        let jobs = std::mem::take(&mut plan.jobs);
        let pool = ReadPool {
            folder: self.folder,
            jobs: &jobs,
            max_file_size: self.options.max_file_size,
            redactor: self.redactor,
        };
        let mut state = RunState::new(self, plan, jobs.len());
        let drained = pool.run(|results| state.drain(&results, on_progress));
        let ended = match drained {
            Ok(DrainEnd::Stopped) if on_stop == OnStop::Abandon => Ok(IndexRunEnd::Stopped),
            Ok(DrainEnd::Lost) => Ok(IndexRunEnd::Lost),
            Ok(_) => state.publish(before.as_ref()),
            Err(error) => Err(error),
        };
        if let Some(run) = state.run.take() {
            // Report the error that ended the run; the next run cleans up.
            let cleaned = store::abandon(self.db, run);
            return ended.and_then(|ended| cleaned.map(|()| ended));
        }
        ended
    }
}

/// Prepared files that are not published yet.
struct RunState<'a> {
    index_run: &'a IndexRun<'a>,
    plan: IndexPlan,
    done: IndexRunReport,
    progress: IndexProgress,
    run: Option<i64>,
    batch: Vec<PreparedFile>,
    batch_bytes: usize,
    touched: Vec<(i64, u64, i64)>,
}

enum DrainEnd {
    Everything,
    Stopped,
    Lost,
}

impl<'a> RunState<'a> {
    fn new(index_run: &'a IndexRun<'a>, plan: IndexPlan, jobs: usize) -> Self {
        let done = IndexRunReport {
            unchanged: plan.unchanged,
            ..IndexRunReport::default()
        };
        let progress = IndexProgress {
            files_done: plan.unchanged,
            files_total: Some(plan.unchanged + jobs as u64),
            chunks: 0,
        };
        Self {
            index_run,
            plan,
            done,
            progress,
            run: None,
            batch: Vec::new(),
            batch_bytes: 0,
            touched: Vec::new(),
        }
    }

    /// Receives the prepared files and writes them in batches.
    fn drain(
        &mut self,
        results: &ReadResults<'_>,
        on_progress: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<DrainEnd, ContextError> {
        let (mut reported, mut written) = (Instant::now(), Instant::now());
        if on_progress(self.progress).is_break() {
            return Ok(DrainEnd::Stopped);
        }
        loop {
            match results.next(PROGRESS_INTERVAL) {
                NextResult::Done(job, outcome) => self.accept(job, outcome),
                NextResult::Waiting => {}
                NextResult::End => break,
            }
            if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_FILES {
                if self.write_batch()?.is_err() {
                    return Ok(DrainEnd::Lost);
                }
                written = Instant::now();
            }
            if self.touched.len() >= BATCH_TOUCHES {
                self.write_times()?;
            }
            if written.elapsed() > HEARTBEAT_INTERVAL
                && let Some(run) = self.run
            {
                store::heartbeat(self.index_run.db, self.index_run.root_text, run)?;
                written = Instant::now();
            }
            if reported.elapsed() > PROGRESS_INTERVAL {
                if on_progress(self.progress).is_break() {
                    return Ok(DrainEnd::Stopped);
                }
                reported = Instant::now();
            }
        }
        match on_progress(self.progress) {
            ControlFlow::Break(()) => Ok(DrainEnd::Stopped),
            ControlFlow::Continue(()) => Ok(DrainEnd::Everything),
        }
    }

    fn accept(&mut self, job: &ReadJob, outcome: ReadOutcome) {
        self.progress.files_done += 1;
        match outcome {
            ReadOutcome::Ready(file) => {
                self.done.read += 1;
                self.progress.chunks += file.chunks.len() as u64;
                add_counts(&mut self.done.redacted, &file.redacted);
                self.batch_bytes += file.weight();
                self.batch.push(*file);
            }
            ReadOutcome::Unchanged {
                row,
                size,
                modified,
            } => {
                self.done.unchanged += 1;
                self.touched.push((row, size, modified));
            }
            ReadOutcome::Skipped(reason) => {
                count_skip(&mut self.plan.skipped, reason);
                self.plan
                    .removed_rows
                    .extend(job.previous.as_ref().map(|(row, _)| *row));
            }
            ReadOutcome::Gone => {
                self.plan
                    .removed_rows
                    .extend(job.previous.as_ref().map(|(row, _)| *row));
            }
        }
    }

    fn write_batch(&mut self) -> Result<Result<(), RunLost>, ContextError> {
        let staged = store::stage(
            self.index_run.db,
            self.index_run.root_text,
            &mut self.run,
            &self.batch,
        )?;
        self.batch.clear();
        self.batch_bytes = 0;
        self.index_run.db.yield_lock();
        Ok(staged)
    }

    fn write_times(&mut self) -> Result<(), ContextError> {
        if !self.touched.is_empty() {
            store::touch(self.index_run.db, &self.touched)?;
            self.touched.clear();
            self.index_run.db.yield_lock();
        }
        Ok(())
    }

    /// Returns whether there is nothing to publish.
    fn is_unchanged(&self, tree: &IndexTree) -> bool {
        let is_idle =
            self.run.is_none() && self.batch.is_empty() && self.plan.removed_rows.is_empty();
        is_idle && tree.settings == self.index_run.settings && tree.branch == self.index_run.branch
    }

    fn note_unchanged(&mut self, tree: &IndexTree) -> Result<IndexRunEnd, ContextError> {
        let mut tree = tree.clone();
        let is_complete = self.plan.walk_result == WalkResult::Everything;
        let age = now() - tree.refreshed;
        if is_complete && self.done.unread == 0 {
            // Every search refreshes; not every refresh needs a write.
            if !(0..UNCHANGED_NOTE_MS).contains(&age) {
                store::note_unchanged(self.index_run.db, tree.id)?;
            }
            tree.refreshed = now();
        }
        Ok(IndexRunEnd::Published {
            tree: Box::new(tree),
            done: std::mem::take(&mut self.done),
            is_complete,
            conflicted: false,
        })
    }

    fn publish(&mut self, before: Option<&IndexTree>) -> Result<IndexRunEnd, ContextError> {
        self.write_times()?;
        let index_run = self.index_run;
        self.done.chunks = self.progress.chunks;
        self.done.removed = self.plan.removed_rows.len() as u64;
        self.done.unread = self.progress.files_total.unwrap_or(0) - self.progress.files_done;
        if let Some(tree) = before.filter(|tree| self.is_unchanged(tree)) {
            return self.note_unchanged(tree);
        }
        let change = TreeChange {
            root: index_run.root_text,
            branch: index_run.branch,
            settings: index_run.settings,
            version: before.map_or(0, |tree| tree.version),
            run: self.run,
            last: &self.batch,
            removed_rows: &self.plan.removed_rows,
            skipped: &self.plan.skipped,
            is_complete: self.plan.walk_result == WalkResult::Everything && self.done.unread == 0,
        };
        let Ok(shown) = store::publish(index_run.db, &change)? else {
            return Ok(IndexRunEnd::Lost);
        };
        self.run = None;
        Ok(IndexRunEnd::Published {
            tree: Box::new(shown.tree),
            is_complete: self.plan.walk_result == WalkResult::Everything,
            done: std::mem::take(&mut self.done),
            conflicted: shown.conflicted,
        })
    }
}

fn add_counts(counts: &mut BTreeMap<Arc<str>, usize>, more: &BTreeMap<Arc<str>, usize>) {
    for (rule, times) in more {
        *counts.entry(Arc::clone(rule)).or_default() += times;
    }
}

/// The work of an index run.
#[derive(Debug)]
pub(super) struct IndexPlan {
    /// Files that are new or may have changed.
    pub(super) jobs: Vec<ReadJob>,
    /// Number of unchanged files.
    pub(super) unchanged: u64,
    /// Rows of files that no longer exist or are excluded now.
    pub(super) removed_rows: Vec<i64>,
    pub(super) skipped: SkipCounts,
    pub(super) walk_result: WalkResult,
}

/// Compares the folder with the index. Files read before `read_before` count as changed.
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
    // A time in the future means that the clock was wrong.
    let is_old = |indexed: &IndexedFile| {
        indexed.indexed > started || read_before.is_some_and(|time| indexed.indexed < time)
    };
    let (jobs, unchanged) = (&mut plan.jobs, &mut plan.unchanged);
    let mut on_file = |found: FoundFile| {
        let mut indexed = indexed.remove(&found.path);
        if let Some(indexed) = indexed.as_mut().filter(|indexed| is_old(indexed)) {
            // Keep the row, so that it is removed if the file cannot be read; an empty hash equals no other.
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
    // Only a complete walk shows which files are missing.
    if plan.walk_result == WalkResult::Everything {
        plan.removed_rows = indexed.into_values().map(|indexed| indexed.row).collect();
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_read_keeps_the_row() {
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
