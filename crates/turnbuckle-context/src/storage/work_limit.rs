//! Limits for blocking work: cancellation and timeout.
//!
//! A thread that waits for the disk cannot be dropped like a future. It runs under a [`WorkLimit`], which all its database
//! reads check: SQLite calls back every few thousand steps.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::ContextError;

thread_local! {
    static CURRENT: RefCell<Option<Arc<WorkLimit>>> = const { RefCell::new(None) };
}

/// A timeout that can also be cancelled.
#[derive(Debug)]
pub(crate) struct WorkLimit {
    started: Instant,
    timeout: Duration,
    is_cancelled: AtomicBool,
}

impl WorkLimit {
    /// Creates a limit that starts now.
    pub(crate) fn new(timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            timeout,
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Returns the limit of the current thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs work under this limit.
    pub(crate) fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let _restore = RestoreLimit(before);
        work()
    }

    /// Cancels the work.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.check().is_err()
    }

    /// Fails if the work was cancelled or has timed out.
    pub(crate) fn check(&self) -> Result<(), ContextError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(ContextError::Cancelled);
        }
        if self.started.elapsed() < self.timeout {
            Ok(())
        } else {
            Err(ContextError::TimedOut(self.timeout))
        }
    }
}

/// Cancels work when dropped, together with the future that waits for it.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) Arc<WorkLimit>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Restores the previous limit of a thread, even if the work panics.
struct RestoreLimit(Option<Arc<WorkLimit>>);

impl Drop for RestoreLimit {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;

    /// A query that never ends.
    const ENDLESS: &str =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    fn run_endless_query(database: &Database) -> Result<i64, ContextError> {
        database.read(|db| Ok(db.query_row(ENDLESS, [], |row| row.get(0))?))
    }

    #[test]
    fn a_query_ends_after_the_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        let limit = WorkLimit::new(Duration::from_millis(20));
        let error = limit.run(|| run_endless_query(&database)).unwrap_err();
        assert!(matches!(error, ContextError::TimedOut(_)), "{error:?}");
        assert!(error.to_string().contains("20ms"), "{error}");
        let error = limit.run(|| database.read(|_| Ok(()))).unwrap_err();
        assert!(
            matches!(error, ContextError::TimedOut(_)),
            "no new query starts"
        );
        database.read(|_| Ok(())).unwrap();
    }

    #[test]
    fn a_query_ends_when_its_caller_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        let limit = WorkLimit::new(Duration::MAX);
        let (started, has_started) = std::sync::mpsc::channel();
        let query = || {
            database.read(|db| {
                started.send(()).unwrap();
                Ok(db.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)
            })
        };
        let error = std::thread::scope(|scope| {
            let running = scope.spawn(|| limit.run(query));
            has_started.recv().unwrap();
            drop(CancelOnDrop(Arc::clone(&limit)));
            running.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, ContextError::Cancelled), "{error:?}");
    }

    #[test]
    fn a_limit_applies_to_its_work_only() {
        let limit = WorkLimit::new(Duration::MAX);
        limit.run(|| assert!(WorkLimit::current().is_some()));
        assert!(WorkLimit::current().is_none());
    }
}
