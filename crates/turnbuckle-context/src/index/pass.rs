//! One look at a folder: plan, read, write, show.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::plan::{Plan, plan};
use super::pool::{Next, Pool, Results};
use super::read::{Job, Outcome, Prepared};
use super::store::{self, Change, Lost};
use super::tree::{self, Tree};
use super::walk::{Walked, count};
use super::{IndexOptions, Step};
use crate::database::now;
use crate::folder::Folder;
use crate::{ContextError, Database, Redactor};

/// Text that is written in one transaction; somebody else may wait for it.
const BATCH_BYTES: usize = 512 << 10;
const BATCH_FILES: usize = 256;
/// Times of files that are noted in one transaction.
const BATCH_TIMES: usize = 2_000;
/// How often somebody is told how far it is.
const TELL: Duration = Duration::from_millis(50);
/// A run that waits for a slow disk says that it lives.
const BEAT: Duration = Duration::from_secs(10);

/// How old the note may be that nothing has changed, in milliseconds.
const NEWS: i64 = 5_000;

/// A look at a folder.
pub(super) struct Pass<'a> {
    pub(super) db: &'a Database,
    /// The folder, held open: its path may lead elsewhere at any time.
    pub(super) folder: &'a Folder,
    pub(super) root: &'a Path,
    /// The same, as it is stored.
    pub(super) root_text: &'a str,
    pub(super) branch: &'a str,
    pub(super) options: &'a IndexOptions,
    pub(super) settings: &'a str,
    pub(super) redactor: &'a Redactor,
    /// Everything that was read before is read again.
    pub(super) read_before: Option<i64>,
}

/// What a look did.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) read: u64,
    pub(super) chunks: u64,
    pub(super) unchanged: u64,
    pub(super) removed: u64,
    /// Files that have changed and were not read.
    pub(super) left: u64,
    pub(super) redacted: BTreeMap<Arc<str>, usize>,
}

impl Done {
    /// What there is to tell when all is done.
    pub(super) fn step(&self) -> Step {
        let files = self.read + self.unchanged;
        Step {
            files_done: files,
            files_total: Some(files),
            chunks: self.chunks,
        }
    }

    /// Adds what another look did, which found unchanged what this one read.
    pub(super) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.chunks += other.chunks;
        self.removed += other.removed;
        self.unchanged = other.unchanged.saturating_sub(self.read - other.read);
        self.left = other.left;
        add_counts(&mut self.redacted, &other.redacted);
    }
}

/// How a look ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The tree is as the folder is, but for what is left.
    Shown {
        tree: Box<Tree>,
        done: Done,
        /// Everything was looked at.
        is_complete: bool,
        met_another: bool,
    },
    /// Somebody took the run for dead.
    Lost,
    /// It was told to stop before the folder was seen whole.
    Stopped,
}

/// What to do with what is ready when told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenStopped {
    /// Show it: each file is right by itself.
    Show,
    /// Give it up.
    Abandon,
}

impl Pass<'_> {
    /// Looks at the folder, and brings the tree up to date.
    pub(super) fn run(
        &self,
        when_stopped: WhenStopped,
        watch: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Ended, ContextError> {
        let before = tree::find(self.db, self.root_text)?;
        let known = match &before {
            Some(tree) => store::known(self.db, tree.id)?,
            None => HashMap::new(),
        };
        let mut go_on = || watch(Step::default());
        let mut plan = plan(
            self.folder,
            self.root,
            self.options,
            known,
            self.read_before,
            &mut go_on,
        )?;
        if plan.walked == Walked::Stopped {
            return Ok(Ended::Stopped);
        }
        let jobs = std::mem::take(&mut plan.jobs);
        let pool = Pool {
            folder: self.folder,
            jobs: &jobs,
            most: self.options.max_file_size,
            redactor: self.redactor,
        };
        let mut work = Work::new(self, plan, jobs.len());
        let taken = pool.run(|results| work.take(&results, watch));
        let ended = match taken {
            Ok(Taken::Stopped) if when_stopped == WhenStopped::Abandon => Ok(Ended::Stopped),
            Ok(Taken::Lost) => Ok(Ended::Lost),
            Ok(_) => work.show(before.as_ref()),
            Err(error) => Err(error),
        };
        if let Some(run) = work.run.take() {
            // The error that ended it is the one to tell; whoever comes next cleans up.
            let cleaned = store::abandon(self.db, run);
            return ended.and_then(|ended| cleaned.map(|()| ended));
        }
        ended
    }
}

/// What is ready and not yet shown.
struct Work<'a> {
    pass: &'a Pass<'a>,
    plan: Plan,
    done: Done,
    step: Step,
    run: Option<i64>,
    batch: Vec<Prepared>,
    batch_bytes: usize,
    same: Vec<(i64, u64, i64)>,
}

enum Taken {
    Everything,
    Stopped,
    Lost,
}

impl<'a> Work<'a> {
    fn new(pass: &'a Pass<'a>, plan: Plan, jobs: usize) -> Self {
        let done = Done {
            unchanged: plan.unchanged,
            ..Done::default()
        };
        let step = Step {
            files_done: plan.unchanged,
            files_total: Some(plan.unchanged + jobs as u64),
            chunks: 0,
        };
        Self {
            pass,
            plan,
            done,
            step,
            run: None,
            batch: Vec::new(),
            batch_bytes: 0,
            same: Vec::new(),
        }
    }

    /// Takes what was read, and writes it in batches.
    fn take(
        &mut self,
        results: &Results<'_>,
        watch: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Taken, ContextError> {
        let (mut told, mut written) = (Instant::now(), Instant::now());
        if watch(self.step).is_break() {
            return Ok(Taken::Stopped);
        }
        loop {
            match results.next(TELL) {
                Next::Done(job, outcome) => self.accept(job, outcome),
                Next::Waiting => {}
                Next::End => break,
            }
            if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_FILES {
                if self.write()?.is_err() {
                    return Ok(Taken::Lost);
                }
                written = Instant::now();
            }
            if self.same.len() >= BATCH_TIMES {
                self.write_times()?;
            }
            if written.elapsed() > BEAT
                && let Some(run) = self.run
            {
                store::beat(self.pass.db, self.pass.root_text, run)?;
                written = Instant::now();
            }
            if told.elapsed() > TELL {
                if watch(self.step).is_break() {
                    return Ok(Taken::Stopped);
                }
                told = Instant::now();
            }
        }
        match watch(self.step) {
            ControlFlow::Break(()) => Ok(Taken::Stopped),
            ControlFlow::Continue(()) => Ok(Taken::Everything),
        }
    }

    fn accept(&mut self, job: &Job, outcome: Outcome) {
        self.step.files_done += 1;
        match outcome {
            Outcome::Ready(file) => {
                self.done.read += 1;
                self.step.chunks += file.chunks.len() as u64;
                add_counts(&mut self.done.redacted, &file.redacted);
                self.batch_bytes += file.weight();
                self.batch.push(*file);
            }
            Outcome::Same {
                row,
                size,
                modified,
            } => {
                self.done.unchanged += 1;
                self.same.push((row, size, modified));
            }
            Outcome::Nothing(reason) => {
                count(&mut self.plan.left_out, reason);
                self.plan
                    .vanished
                    .extend(job.known.as_ref().map(|(row, _)| *row));
            }
            Outcome::Gone => {
                self.plan
                    .vanished
                    .extend(job.known.as_ref().map(|(row, _)| *row));
            }
        }
    }

    fn write(&mut self) -> Result<Result<(), Lost>, ContextError> {
        let staged = store::stage(
            self.pass.db,
            self.pass.root_text,
            &mut self.run,
            &self.batch,
        )?;
        self.batch.clear();
        self.batch_bytes = 0;
        self.pass.db.rest();
        Ok(staged)
    }

    fn write_times(&mut self) -> Result<(), ContextError> {
        if !self.same.is_empty() {
            store::touch(self.pass.db, &self.same)?;
            self.same.clear();
            self.pass.db.rest();
        }
        Ok(())
    }

    /// Whether there is nothing to show.
    fn is_as_before(&self, tree: &Tree) -> bool {
        let is_idle = self.run.is_none() && self.batch.is_empty() && self.plan.vanished.is_empty();
        is_idle && tree.settings == self.pass.settings && tree.branch == self.pass.branch
    }

    fn note_unchanged(&mut self, tree: &Tree) -> Result<Ended, ContextError> {
        let mut tree = tree.clone();
        let is_complete = self.plan.walked == Walked::Everything;
        let age = now() - tree.refreshed;
        if is_complete && self.done.left == 0 {
            // A search looks every time; the disk need not hear of it every time.
            if !(0..NEWS).contains(&age) {
                store::note_unchanged(self.pass.db, tree.id)?;
            }
            tree.refreshed = now();
        }
        Ok(Ended::Shown {
            tree: Box::new(tree),
            done: std::mem::take(&mut self.done),
            is_complete,
            met_another: false,
        })
    }

    fn show(&mut self, before: Option<&Tree>) -> Result<Ended, ContextError> {
        self.write_times()?;
        let pass = self.pass;
        self.done.chunks = self.step.chunks;
        self.done.removed = self.plan.vanished.len() as u64;
        self.done.left = self.step.files_total.unwrap_or(0) - self.step.files_done;
        if let Some(tree) = before.filter(|tree| self.is_as_before(tree)) {
            return self.note_unchanged(tree);
        }
        let change = Change {
            root: pass.root_text,
            branch: pass.branch,
            settings: pass.settings,
            version: before.map_or(0, |tree| tree.version),
            run: self.run,
            last: &self.batch,
            vanished: &self.plan.vanished,
            left_out: &self.plan.left_out,
            is_complete: self.plan.walked == Walked::Everything && self.done.left == 0,
        };
        let Ok(shown) = store::show(pass.db, &change)? else {
            return Ok(Ended::Lost);
        };
        self.run = None;
        Ok(Ended::Shown {
            tree: Box::new(shown.tree),
            is_complete: self.plan.walked == Walked::Everything,
            done: std::mem::take(&mut self.done),
            met_another: shown.met_another,
        })
    }
}

fn add_counts(counts: &mut BTreeMap<Arc<str>, usize>, more: &BTreeMap<Arc<str>, usize>) {
    for (rule, times) in more {
        *counts.entry(Arc::clone(rule)).or_default() += times;
    }
}
