//! Work that ends when its caller has gone, or when its time is over.
//!
//! A thread that waits for the disk cannot be dropped as a future can. It works under a [`WorkLimit`], which everything
//! that it reads from a database looks at: SQLite asks it every few thousand steps whether to go on.

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

/// How long work may go on.
#[derive(Debug)]
pub(crate) struct WorkLimit {
    started: Instant,
    timeout: Duration,
    is_cancelled: AtomicBool,
}

impl WorkLimit {
    /// Allows so much time from now on.
    pub(crate) fn new(timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            timeout,
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// The limit that this thread works under.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Works under this limit.
    pub(crate) fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let _restore = RestoreLimit(before);
        work()
    }

    /// Marks the caller as gone.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.check().is_err()
    }

    /// Fails if the caller has gone, or the deadline has passed.
    pub(crate) fn check(&self) -> Result<(), ContextError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(ContextError::Cancelled);
        }
        match self.started.elapsed() < self.timeout {
            true => Ok(()),
            false => Err(ContextError::TimedOut(self.timeout)),
        }
    }
}

/// Cancels work when it is dropped: with the future that waits for it.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) Arc<WorkLimit>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Sets the limit of a thread back, also when the work panics.
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

    /// A question that SQLite would never finish.
    const ENDLESS: &str =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    fn ask(database: &Database) -> Result<i64, ContextError> {
        database.read(|db| Ok(db.query_row(ENDLESS, [], |row| row.get(0))?))
    }

    #[test]
    fn a_question_ends_when_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        let limit = WorkLimit::new(Duration::from_millis(20));
        let error = limit.run(|| ask(&database)).unwrap_err();
        assert!(matches!(error, ContextError::TimedOut(_)), "{error:?}");
        assert!(error.to_string().contains("20ms"), "{error}");
        let error = limit.run(|| database.read(|_| Ok(()))).unwrap_err();
        assert!(matches!(error, ContextError::TimedOut(_)), "nothing begins");
        database.read(|_| Ok(())).unwrap();
    }

    #[test]
    fn a_query_ends_when_its_caller_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path().join("a.db")).unwrap();
        let limit = WorkLimit::new(Duration::MAX);
        let (started, has_begun) = std::sync::mpsc::channel();
        let ask = || {
            database.read(|db| {
                started.send(()).unwrap();
                Ok(db.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)
            })
        };
        let error = std::thread::scope(|scope| {
            let asking = scope.spawn(|| limit.run(ask));
            has_begun.recv().unwrap();
            drop(CancelOnDrop(Arc::clone(&limit)));
            asking.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, ContextError::Cancelled), "{error:?}");
    }

    #[test]
    fn a_limit_holds_for_its_work_only() {
        let limit = WorkLimit::new(Duration::MAX);
        limit.run(|| assert!(WorkLimit::current().is_some()));
        assert!(WorkLimit::current().is_none());
    }
}
