//! What every tool, resource and prompt works with: whose data, where it is, and threads that may wait for the disk.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Span;
use turnbuckle_server::Context;

use crate::embedding::Embedder;
use crate::limit::{CancelOnDrop, WorkLimit};
use crate::memory::HalfLife;
use crate::published::Published;
use crate::slots::Slots;
use crate::{ContextError, Database, Library, Owner, Owners, Project, Redactor};

/// Calls that may be at the disk at one time. SQLite has one writer per file, so more would only wait there.
const AT_ONCE: usize = 8;
/// Repositories that may be indexed at one time, beside the calls above: whoever saves never waits for these.
const INDEXING_AT_ONCE: usize = 2;
/// Calls of one owner that may wait for their turn.
const MOST_WAITING: usize = 1_000;
const MOST_WAITING_TO_INDEX: usize = 64;
/// How long nothing happens before memory is given back that would only make the next call a little faster.
const IDLE: Duration = Duration::from_secs(10);

/// What handlers share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    shared: Arc<Shared>,
}

struct Shared {
    library: Library,
    owners: Owners,
    habits: Habits,
    published: Published,
    short: Slots,
    long: Slots,
    /// Whether somebody waits for the server to be idle, and how much work there was.
    is_tidying: AtomicBool,
    worked: AtomicU64,
    /// What is being worked at while nobody waits: the path of an indexed folder, or of a database.
    turns: Mutex<HashSet<PathBuf>>,
    /// Until when the provider of embeddings is left alone, because it failed.
    rest: Mutex<Option<Instant>>,
}

/// How the server works, as it was built.
pub(crate) struct Habits {
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// How fast what is remembered loses weight.
    pub(crate) half_life: HalfLife,
    /// How long a search may index a project that nobody has indexed.
    pub(crate) first_index: Duration,
    /// How long a call may wait for its turn, and how long it may then look for something.
    pub(crate) deadline: Duration,
    /// How long indexing may take.
    pub(crate) index_deadline: Duration,
    /// The bytes that an owner may keep.
    pub(crate) quota: Option<u64>,
}

/// The right to work at something alone, given back when it is dropped.
pub(crate) struct Turn {
    desk: Desk,
    path: PathBuf,
}

impl Desk {
    pub(crate) fn new(library: Library, owners: Owners, habits: Habits) -> Self {
        // Where there are several owners, none of them may have all places.
        let (most, most_indexing) = match owners {
            Owners::One(_) => (AT_ONCE, INDEXING_AT_ONCE),
            Owners::ByPrincipal => (AT_ONCE * 3 / 4, INDEXING_AT_ONCE / 2),
        };
        let short = Slots::new(AT_ONCE, most, MOST_WAITING);
        let long = Slots::new(INDEXING_AT_ONCE, most_indexing, MOST_WAITING_TO_INDEX);
        Self {
            shared: Arc::new(Shared {
                library,
                published: Published::new(&owners),
                owners,
                habits,
                short,
                long,
                is_tidying: AtomicBool::new(false),
                worked: AtomicU64::new(0),
                turns: Mutex::default(),
                rest: Mutex::default(),
            }),
        }
    }

    pub(crate) fn library(&self) -> &Library {
        &self.shared.library
    }

    pub(crate) fn owners(&self) -> &Owners {
        &self.shared.owners
    }

    pub(crate) fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.shared.habits.embedder.as_ref()
    }

    pub(crate) fn half_life(&self) -> HalfLife {
        self.shared.habits.half_life
    }

    pub(crate) fn first_index(&self) -> Duration {
        self.shared.habits.first_index
    }

    pub(crate) fn quota(&self) -> Option<u64> {
        self.shared.habits.quota
    }

    pub(crate) fn published(&self) -> &Published {
        &self.shared.published
    }

    pub(crate) fn redactor(&self) -> &'static Redactor {
        Redactor::standard()
    }

    /// Whom a call acts for.
    pub(crate) fn owner(&self, cx: &Context) -> Result<Owner, ContextError> {
        self.shared.owners.of(cx.principal())
    }

    /// Opens what is kept of the project of a folder.
    pub(crate) fn open(
        &self,
        owner: &Owner,
        path: &str,
    ) -> Result<(Project, Arc<Database>), ContextError> {
        let project = self.project(owner, path)?;
        let database = self.library().open(owner, &project)?;
        Ok((project, database))
    }

    /// Finds the project of a folder, and opens what is kept of it, if anything is: who only looks makes no files.
    pub(crate) fn look(
        &self,
        owner: &Owner,
        path: &str,
    ) -> Result<(Project, Option<Arc<Database>>), ContextError> {
        let project = self.project(owner, path)?;
        let database = self.library().open_id(owner, project.id())?;
        Ok((project, database))
    }

    /// Finds the project of a folder that the owner may use.
    fn project(&self, owner: &Owner, path: &str) -> Result<Project, ContextError> {
        // Callers who have only a name in common with each other must not read all that this process can.
        if matches!(self.owners(), Owners::ByPrincipal) && !self.library().is_limited() {
            return Err(ContextError::refused(
                "this server was set up without folders that its callers may use; tell the user",
            ));
        }
        self.library().project(owner, path)
    }

    /// Takes the turn to work at something in the background, unless somebody else has it.
    pub(crate) fn take_turn(&self, path: &Path) -> Option<Turn> {
        let is_free = self.turns().insert(path.to_owned());
        is_free.then(|| Turn {
            desk: self.clone(),
            path: path.to_owned(),
        })
    }

    fn turns(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        lock(&self.shared.turns)
    }

    /// Leaves the provider of embeddings alone for a while.
    pub(crate) fn rest_until(&self, then: Instant) {
        *lock(&self.shared.rest) = Some(then);
    }

    pub(crate) fn is_resting(&self) -> bool {
        lock(&self.shared.rest).is_some_and(|then| Instant::now() < then)
    }

    /// Runs work that changes something on a thread that may wait for the disk.
    ///
    /// Work that has begun comes to its end also if nobody waits for it any longer.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let Habits { deadline, .. } = self.shared.habits;
        let work = move |desk: &Self, _: &Arc<WorkLimit>| work(desk);
        self.run(&self.shared.short, owner, deadline, work).await
    }

    /// Runs work that only looks for something. It ends when its caller has gone, and at the deadline.
    pub(crate) async fn block_read<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let Habits { deadline, .. } = self.shared.habits;
        let work = move |desk: &Self, limit: &Arc<WorkLimit>| limit.run(|| work(desk));
        self.run(&self.shared.short, owner, deadline, work).await
    }

    /// Runs work of minutes, which asks its limit now and then whether to go on.
    pub(crate) async fn block_long<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self, &Arc<WorkLimit>) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let Habits { index_deadline, .. } = self.shared.habits;
        self.run(&self.shared.long, owner, index_deadline, work)
            .await
    }

    async fn run<T: Send + 'static>(
        &self,
        slots: &Slots,
        owner: &Owner,
        allowed: Duration,
        work: impl FnOnce(&Self, &Arc<WorkLimit>) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let slot = match timeout(allowed, slots.acquire(owner)).await {
            Ok(slot) => slot?,
            Err(_) => return Err(ContextError::TimedOut(allowed)),
        };
        let (desk, span) = (self.clone(), Span::current());
        let limit = WorkLimit::new(allowed);
        let _cancel = CancelOnDrop(limit.clone());
        let running = tokio::task::spawn_blocking(move || {
            // Given back when the thread is free, however long ago its caller left.
            let _slot = slot;
            span.in_scope(|| work(&desk, &limit))
        });
        let outcome = running.await;
        self.tidy_later();
        match outcome {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(ContextError::Cancelled),
            },
        }
    }

    /// Gives memory back when nothing has happened for a while.
    fn tidy_later(&self) {
        self.shared.worked.fetch_add(1, Ordering::Relaxed);
        if !self.shared.is_tidying.swap(true, Ordering::Relaxed) {
            tokio::spawn(tidy(Arc::downgrade(&self.shared)));
        }
    }
}

/// Waits until the server is idle, and closes what it keeps open. A server that is gone is not waited for.
async fn tidy(desk: Weak<Shared>) {
    let mut before = None;
    loop {
        let Some(shared) = desk.upgrade() else {
            return;
        };
        let worked = shared.worked.load(Ordering::Relaxed);
        if before == Some(worked) {
            let close = move || {
                shared.library.close_idle();
                shared.is_tidying.store(false, Ordering::Relaxed);
            };
            // It ends by itself and is not awaited.
            drop(tokio::task::spawn_blocking(close));
            return;
        }
        before = Some(worked);
        drop(shared);
        tokio::time::sleep(IDLE).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.desk.turns().remove(&self.path);
    }
}

#[cfg(test)]
mod tests;
