//! Files read and prepared by a few threads, within a bound of memory.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::read::{Job, Outcome, read};
use crate::Redactor;
use crate::folder::Folder;

/// Bytes of files that are in memory at once and not handed over. What is made of them is about thrice that.
const MOST_BYTES: u64 = 12 << 20;
const MOST_WAITING: usize = 256;
const MOST_THREADS: usize = 4;

/// Files to be read, and what for.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    pub(super) folder: &'a Folder,
    pub(super) jobs: &'a [Job],
    pub(super) most: u64,
    pub(super) redactor: &'a Redactor,
}

/// What comes out, in any order. The threads end when this is dropped.
#[derive(Debug)]
pub(super) struct Results<'a> {
    receiver: Receiver<(&'a Job, Outcome)>,
    room: &'a Room,
}

/// What came out next.
#[derive(Debug)]
pub(super) enum Next<'a> {
    Done(&'a Job, Outcome),
    /// Nothing yet.
    Waiting,
    /// That was all.
    End,
}

impl Pool<'_> {
    /// Reads the files while somebody takes what comes out.
    pub(super) fn run<T>(&self, take: impl FnOnce(Results<'_>) -> T) -> T {
        let (next, room) = (AtomicUsize::new(0), Room::default());
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(MOST_THREADS).min(self.jobs.len());
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            for _ in 0..threads {
                let (sender, next, room) = (sender.clone(), &next, &room);
                scope.spawn(move || self.work(next, room, &sender));
            }
            drop(sender);
            take(Results {
                receiver,
                room: &room,
            })
        })
    }

    fn work<'j>(
        &'j self,
        next: &AtomicUsize,
        room: &Room,
        sender: &SyncSender<(&'j Job, Outcome)>,
    ) {
        while let Some(job) = self.jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !room.enter(job.size) {
                return;
            }
            let outcome = read(self.folder, job, self.most, self.redactor);
            if sender.send((job, outcome)).is_err() {
                return;
            }
        }
    }
}

impl<'a> Results<'a> {
    /// Waits for the next file.
    pub(super) fn next(&self, patience: Duration) -> Next<'a> {
        match self.receiver.recv_timeout(patience) {
            Ok((job, outcome)) => {
                self.room.leave(job.size);
                Next::Done(job, outcome)
            }
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }
}

impl Drop for Results<'_> {
    fn drop(&mut self) {
        self.room.close();
    }
}

/// Counts the bytes that are in memory. A file that is larger than the room has it to itself.
#[derive(Debug, Default)]
struct Room {
    used: Mutex<Used>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    bytes: u64,
    is_closed: bool,
}

impl Room {
    /// Waits for room. Says no when nobody wants the result any more.
    fn enter(&self, bytes: u64) -> bool {
        let is_full =
            |used: &mut Used| !used.is_closed && used.bytes > 0 && used.bytes + bytes > MOST_BYTES;
        let used = self.changed.wait_while(self.lock(), is_full);
        let mut used = used.unwrap_or_else(PoisonError::into_inner);
        used.bytes += bytes;
        !used.is_closed
    }

    fn leave(&self, bytes: u64) {
        self.lock().bytes -= bytes;
        self.changed.notify_all();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
