//! Reads and prepares files on a few threads, within a memory limit.

use std::{
    num::NonZero,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use super::read::{ReadJob, ReadOutcome, read};
use crate::{
    Redactor,
    storage::{dir_handle::DirHandle, lock},
};

/// Maximum size of the files in memory that are not delivered yet. Prepared files take about three times as much.
const MAX_BUFFERED_BYTES: u64 = 12 << 20;
const MAX_QUEUED_FILES: usize = 256;
const MAX_THREADS: usize = 4;

/// Files to read, with the limits that apply.
#[derive(Debug)]
pub(super) struct ReadPool<'a> {
    pub(super) folder: &'a DirHandle,
    pub(super) jobs: &'a [ReadJob],
    pub(super) max_file_size: u64,
    pub(super) redactor: &'a Redactor,
}

/// The results, in any order. The threads end when this is dropped.
#[derive(Debug)]
pub(super) struct ReadResults<'a> {
    receiver: Receiver<(&'a ReadJob, ReadOutcome)>,
    budget: &'a MemoryBudget,
}

/// The next result.
#[derive(Debug)]
pub(super) enum NextResult<'a> {
    Done(&'a ReadJob, ReadOutcome),
    /// No result yet.
    Waiting,
    /// All results were delivered.
    End,
}

impl ReadPool<'_> {
    /// Reads the files while `take` receives the results.
    pub(super) fn run<T>(&self, take: impl FnOnce(ReadResults<'_>) -> T) -> T {
        let (next, budget) = (AtomicUsize::new(0), MemoryBudget::default());
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(MAX_THREADS).min(self.jobs.len());
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(MAX_QUEUED_FILES);
            for _ in 0..threads {
                let (sender, next, budget) = (sender.clone(), &next, &budget);
                scope.spawn(move || self.work(next, budget, &sender));
            }
            drop(sender);
            take(ReadResults {
                receiver,
                budget: &budget,
            })
        })
    }

    fn work<'j>(
        &'j self,
        next: &AtomicUsize,
        budget: &MemoryBudget,
        sender: &SyncSender<(&'j ReadJob, ReadOutcome)>,
    ) {
        while let Some(job) = self.jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !budget.reserve(job.size) {
                return;
            }
            let outcome = read(self.folder, job, self.max_file_size, self.redactor);
            if sender.send((job, outcome)).is_err() {
                return;
            }
        }
    }
}

impl<'a> ReadResults<'a> {
    /// Waits for the next result.
    pub(super) fn next(&self, timeout: Duration) -> NextResult<'a> {
        match self.receiver.recv_timeout(timeout) {
            Ok((job, outcome)) => {
                self.budget.release(job.size);
                NextResult::Done(job, outcome)
            }
            Err(RecvTimeoutError::Timeout) => NextResult::Waiting,
            Err(RecvTimeoutError::Disconnected) => NextResult::End,
        }
    }
}

impl Drop for ReadResults<'_> {
    fn drop(&mut self) {
        self.budget.close();
    }
}

/// Counts the bytes in memory. A file that exceeds the limit is read alone.
#[derive(Debug, Default)]
struct MemoryBudget {
    used: Mutex<BudgetState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetState {
    bytes: u64,
    is_closed: bool,
}

impl MemoryBudget {
    /// Waits until the bytes fit. Returns `false` if the receiver is gone.
    fn reserve(&self, bytes: u64) -> bool {
        let is_full = |used: &mut BudgetState| {
            !used.is_closed && used.bytes > 0 && used.bytes + bytes > MAX_BUFFERED_BYTES
        };
        let used = self.changed.wait_while(self.lock(), is_full);
        let mut used = used.unwrap_or_else(PoisonError::into_inner);
        used.bytes += bytes;
        !used.is_closed
    }

    fn release(&self, bytes: u64) {
        self.lock().bytes -= bytes;
        self.changed.notify_all();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        lock(&self.used)
    }
}
