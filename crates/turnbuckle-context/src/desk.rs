//! What every tool, resource and prompt works with: whose data, where it is, and threads that may wait for the disk.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Span;
use turnbuckle_server::Context;

use crate::embedding::Embedder;
use crate::memory::HalfLife;
use crate::published::Published;
use crate::{ContextError, Database, Library, Owner, Owners, Project, Redactor};

/// Calls that may be at the disk at one time. SQLite has one writer per file, so more would only wait there.
const AT_ONCE: usize = 8;
/// Repositories that may be indexed at one time, beside the calls above: whoever saves never waits for these.
const INDEXING_AT_ONCE: usize = 2;

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
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
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
}

/// The right to work at something alone, given back when it is dropped.
pub(crate) struct Turn {
    desk: Desk,
    path: PathBuf,
}

impl Desk {
    pub(crate) fn new(library: Library, owners: Owners, habits: Habits) -> Self {
        Self {
            shared: Arc::new(Shared {
                library,
                published: Published::new(&owners),
                owners,
                habits,
                short: Arc::new(Semaphore::new(AT_ONCE)),
                long: Arc::new(Semaphore::new(INDEXING_AT_ONCE)),
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

    /// Runs work that waits for the disk on a thread that may.
    ///
    /// Work that has begun comes to its end also if nobody waits for it any longer.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        self.run(&self.shared.short, work).await
    }

    /// Like [`block`](Self::block), for work of minutes.
    pub(crate) async fn block_long<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        self.run(&self.shared.long, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        threads: &Arc<Semaphore>,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let Ok(permit) = threads.clone().acquire_owned().await else {
            return Err(ContextError::Cancelled);
        };
        let (desk, span) = (self.clone(), Span::current());
        let running = tokio::task::spawn_blocking(move || {
            // Given back when the thread is free, however long ago its caller left.
            let _permit = permit;
            span.in_scope(|| work(&desk))
        });
        match running.await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(ContextError::Cancelled),
            },
        }
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
