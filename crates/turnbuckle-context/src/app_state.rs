//! State shared by all tools, resources and prompts: data directory, configuration, and scheduling of blocking work.

mod lookup;
mod quota;
mod work_slots;

use std::{
    collections::HashSet,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tracing::Span;
use turnbuckle_server::Context;

use self::work_slots::WorkSlots;
pub(crate) use self::{lookup::ItemRef, quota::used_bytes};
use crate::{
    ContextError, DataDir, Database, Owner, OwnershipPolicy, Project, Redactor,
    embedding::Embedder,
    mcp::resource_sync::ResourceSync,
    memory::HalfLife,
    memory_store::{MemoryStore, Partition, SqliteMemoryStore, block_on},
    storage::{
        collections::Collections,
        lock,
        work_limit::{CancelOnDrop, WorkLimit},
    },
    transfer::DataLocation,
};

/// Maximum number of concurrent calls that use the disk. SQLite has one writer per file, so more would only wait there.
const MAX_CONCURRENT_CALLS: usize = 8;
/// Maximum number of concurrent index runs. They have their own slots, so that saving never waits for indexing.
const MAX_CONCURRENT_INDEXING: usize = 2;
/// Maximum number of waiting calls per owner.
const MAX_WAITING_CALLS: usize = 1_000;
const MAX_WAITING_INDEXING: usize = 64;
/// The header with the key of the project.
const PROJECT_HEADER: &str = "turnbuckle-project";
/// Interval at which the server closes databases that were not used since the last time.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);

/// State shared by all handlers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
    shared: Arc<AppStateInner>,
}

struct AppStateInner {
    data_dir: Arc<DataDir>,
    memory: Arc<dyn MemoryStore>,
    /// The store of memory, unless it is the data directory.
    external_memory: Option<Arc<dyn MemoryStore>>,
    owners: OwnershipPolicy,
    config: ServerConfig,
    resource_sync: ResourceSync,
    call_slots: WorkSlots,
    index_slots: WorkSlots,
    /// True if a task is closing unused databases.
    is_closing_unused: AtomicBool,
    /// Background jobs in progress, by path of the indexed folder or database.
    running_jobs: Mutex<HashSet<PathBuf>>,
    /// The end of the pause after the embedding provider failed.
    embeddings_paused_until: Mutex<Option<Instant>>,
}

/// Configuration of the server.
pub(crate) struct ServerConfig {
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// The decay of search scores by age.
    pub(crate) half_life: HalfLife,
    /// Maximum time that a search may spend on the first index of a project.
    pub(crate) first_index_timeout: Duration,
    /// Maximum time that a call may wait for a slot, and that a read may then take.
    pub(crate) call_timeout: Duration,
    /// Maximum time that indexing may take.
    pub(crate) index_timeout: Duration,
    /// Maximum number of bytes per owner.
    pub(crate) quota: Option<u64>,
    /// The store of memory; the data directory if not set.
    pub(crate) memory: Option<Arc<dyn MemoryStore>>,
}

/// Exclusive right to run a background job; released on drop.
pub(crate) struct JobGuard {
    state: AppState,
    path: PathBuf,
}

impl AppState {
    pub(crate) fn new(
        data_dir: DataDir,
        owners: OwnershipPolicy,
        mut config: ServerConfig,
    ) -> Self {
        // With several owners, none may occupy all slots.
        let (most, most_indexing) = match owners {
            OwnershipPolicy::Single(_) => (MAX_CONCURRENT_CALLS, MAX_CONCURRENT_INDEXING),
            OwnershipPolicy::PerPrincipal => {
                (MAX_CONCURRENT_CALLS * 3 / 4, MAX_CONCURRENT_INDEXING / 2)
            }
        };
        let call_slots = WorkSlots::new(MAX_CONCURRENT_CALLS, most, MAX_WAITING_CALLS);
        let index_slots =
            WorkSlots::new(MAX_CONCURRENT_INDEXING, most_indexing, MAX_WAITING_INDEXING);
        let data_dir = Arc::new(data_dir);
        let external_memory = config.memory.take();
        let memory = external_memory
            .clone()
            .unwrap_or_else(|| Arc::new(SqliteMemoryStore::new(data_dir.clone())));
        Self {
            shared: Arc::new(AppStateInner {
                memory,
                external_memory,
                data_dir,
                resource_sync: ResourceSync::new(&owners),
                owners,
                config,
                call_slots,
                index_slots,
                is_closing_unused: AtomicBool::new(false),
                running_jobs: Mutex::default(),
                embeddings_paused_until: Mutex::default(),
            }),
        }
    }

    pub(crate) fn data_dir(&self) -> &Arc<DataDir> {
        &self.shared.data_dir
    }

    /// Returns the store of memory.
    pub(crate) fn memory(&self) -> &Arc<dyn MemoryStore> {
        &self.shared.memory
    }

    /// Returns whether memory is not in the data directory.
    pub(crate) fn has_external_memory(&self) -> bool {
        self.shared.external_memory.is_some()
    }

    /// Returns the location of the data of all owners.
    pub(crate) fn data(&self) -> DataLocation<'_> {
        match &self.shared.external_memory {
            Some(memory) => DataLocation::with_memory(self.data_dir(), &**memory),
            None => DataLocation::from(&**self.data_dir()),
        }
    }

    /// Returns the collections, which combine the store of memory with the indexes.
    pub(crate) fn collections(&self) -> Collections<'_> {
        Collections::new(&**self.memory(), self.data_dir())
    }

    pub(crate) fn ownership(&self) -> &OwnershipPolicy {
        &self.shared.owners
    }

    pub(crate) fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.shared.config.embedder.as_ref()
    }

    pub(crate) fn half_life(&self) -> HalfLife {
        self.shared.config.half_life
    }

    pub(crate) fn first_index_timeout(&self) -> Duration {
        self.shared.config.first_index_timeout
    }

    pub(crate) fn quota(&self) -> Option<u64> {
        self.shared.config.quota
    }

    pub(crate) fn resource_sync(&self) -> &ResourceSync {
        &self.shared.resource_sync
    }

    pub(crate) fn redactor(&self) -> &'static Redactor {
        Redactor::standard()
    }

    /// Returns the owner that a call acts for.
    pub(crate) fn owner(&self, cx: &Context) -> Result<Owner, ContextError> {
        self.shared.owners.owner_for(cx.principal())
    }

    /// Returns the path of the project of a call: that of the key which the client sends with each request, or else the argument.
    pub(crate) fn project_path(&self, cx: &Context, path: String) -> String {
        let key = cx
            .get::<http::HeaderMap>()
            .and_then(|headers| headers.get(PROJECT_HEADER));
        match key {
            Some(key) => format!("project:{}", String::from_utf8_lossy(key.as_bytes())),
            None => path,
        }
    }

    /// Finds the project that a folder belongs to, and opens its database if it exists. Does not create files.
    pub(crate) fn find_project(
        &self,
        owner: &Owner,
        path: &str,
    ) -> Result<(Project, Option<Arc<Database>>), ContextError> {
        let project = self.project(owner, path)?;
        let database = self.data_dir().open_project_by_id(owner, project.id())?;
        Ok((project, database))
    }

    /// Finds the project that a folder belongs to, and creates its partition in the store of memory.
    pub(crate) async fn create_partition(
        &self,
        owner: &Owner,
        path: &str,
    ) -> Result<(Project, Partition), ContextError> {
        let (project, partition) = self.find_partition(owner, path)?;
        let root = project.root().to_string_lossy();
        self.memory().create_project(&partition, &root).await?;
        Ok((project, partition))
    }

    /// Finds the project that a folder belongs to, and its partition in the store of memory, which may be empty.
    pub(crate) fn find_partition(
        &self,
        owner: &Owner,
        path: &str,
    ) -> Result<(Project, Partition), ContextError> {
        let project = self.project(owner, path)?;
        let partition = Partition::project(owner, project.id());
        Ok((project, partition))
    }

    /// Finds the project that a folder belongs to, if the owner may use it.
    fn project(&self, owner: &Owner, path: &str) -> Result<Project, ContextError> {
        if let Some(key) = Project::key_in(path) {
            return Project::from_key(key);
        }
        // Without allowed roots, authenticated callers could read every file of this process.
        if matches!(self.ownership(), OwnershipPolicy::PerPrincipal)
            && !self.data_dir().is_restricted()
        {
            return Err(ContextError::invalid(
                "this server is not configured to use any folder; tell the user to configure allowed folders",
            ));
        }
        self.data_dir().project(owner, path)
    }

    /// Registers a background job, unless one with the same path is running.
    pub(crate) fn try_start_job(&self, path: &Path) -> Option<JobGuard> {
        let is_free = self.running_jobs().insert(path.to_owned());
        is_free.then(|| JobGuard {
            state: self.clone(),
            path: path.to_owned(),
        })
    }

    fn running_jobs(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        lock(&self.shared.running_jobs)
    }

    /// Stops calls to the embedding provider until a time.
    pub(crate) fn pause_embeddings_until(&self, then: Instant) {
        *lock(&self.shared.embeddings_paused_until) = Some(then);
    }

    pub(crate) fn embeddings_paused(&self) -> bool {
        lock(&self.shared.embeddings_paused_until).is_some_and(|then| Instant::now() < then)
    }

    /// Runs blocking work that writes.
    ///
    /// Work that has started runs to its end even if the caller is cancelled.
    pub(crate) async fn run_write<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let ServerConfig { call_timeout, .. } = self.shared.config;
        let work = move |state: &Self, _: &Arc<WorkLimit>| work(state);
        self.run_in_slot(&self.shared.call_slots, owner, call_timeout, work)
            .await
    }

    /// Runs blocking work that only reads. It stops when the caller is cancelled or the timeout expires.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let ServerConfig { call_timeout, .. } = self.shared.config;
        let work = move |state: &Self, limit: &Arc<WorkLimit>| limit.run(|| work(state));
        self.run_in_slot(&self.shared.call_slots, owner, call_timeout, work)
            .await
    }

    /// Runs work on the store of memory that writes, with a copy of this state.
    ///
    /// With SQLite, it runs to its end on the thread of [`run_write`](Self::run_write).
    pub(crate) async fn write_memory<T, W>(
        &self,
        owner: &Owner,
        work: impl FnOnce(Self) -> W + Send + 'static,
    ) -> Result<T, ContextError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ContextError>> + Send,
    {
        self.run_write(owner, |state| block_on(work(state.clone())))
            .await
    }

    /// Runs work on the store of memory that only reads, with a copy of this state.
    ///
    /// With SQLite, it runs on the thread of [`run_read`](Self::run_read), under its limit.
    pub(crate) async fn read_memory<T, W>(
        &self,
        owner: &Owner,
        work: impl FnOnce(Self) -> W + Send + 'static,
    ) -> Result<T, ContextError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ContextError>> + Send,
    {
        self.run_read(owner, |state| block_on(work(state.clone())))
            .await
    }

    /// Runs blocking work that takes minutes and checks its limit regularly.
    pub(crate) async fn run_long<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce(&Self, &Arc<WorkLimit>) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let ServerConfig { index_timeout, .. } = self.shared.config;
        self.run_in_slot(&self.shared.index_slots, owner, index_timeout, work)
            .await
    }

    async fn run_in_slot<T: Send + 'static>(
        &self,
        slots: &WorkSlots,
        owner: &Owner,
        allowed: Duration,
        work: impl FnOnce(&Self, &Arc<WorkLimit>) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let slot = match timeout(allowed, slots.acquire(owner)).await {
            Ok(slot) => slot?,
            Err(_) => return Err(ContextError::TimedOut(allowed)),
        };
        let (state, span) = (self.clone(), Span::current());
        let limit = WorkLimit::new(allowed);
        let _cancel = CancelOnDrop(limit.clone());
        let running = tokio::task::spawn_blocking(move || {
            // The slot is released when the thread is done, even if the caller was cancelled earlier.
            let _slot = slot;
            span.in_scope(|| work(&state, &limit))
        });
        let outcome = running.await;
        self.start_closing_unused();
        match outcome {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(ContextError::Cancelled),
            },
        }
    }

    /// Starts the task that closes unused databases, unless it is running.
    fn start_closing_unused(&self) {
        if !self.shared.is_closing_unused.swap(true, Ordering::Relaxed) {
            tokio::spawn(close_unused(Arc::downgrade(&self.shared)));
        }
    }
}

/// Closes databases that are not used for an interval, until none is open or the server is dropped.
async fn close_unused(state: Weak<AppStateInner>) {
    loop {
        tokio::time::sleep(IDLE_INTERVAL).await;
        let Some(shared) = state.upgrade() else {
            return;
        };
        // A call that ends from now on starts another task.
        shared.is_closing_unused.store(false, Ordering::Relaxed);
        let closing = {
            let shared = shared.clone();
            tokio::task::spawn_blocking(move || shared.data_dir.close_unused())
        };
        let has_others = closing.await.unwrap_or(false);
        if !has_others || shared.is_closing_unused.swap(true, Ordering::Relaxed) {
            return;
        }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.state.running_jobs().remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// A query that never ends.
    const ENDLESS: &str =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    fn state(data: &Path) -> (AppState, Owner) {
        let owner = Owner::for_user("ada");
        let config = ServerConfig {
            embedder: None,
            half_life: HalfLife::default(),
            first_index_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(3_600),
            index_timeout: Duration::from_secs(3_600),
            quota: None,
            memory: None,
        };
        let state = AppState::new(
            DataDir::new(data),
            OwnershipPolicy::Single(owner.clone()),
            config,
        );
        (state, owner)
    }

    #[tokio::test]
    async fn a_cancelled_read_releases_its_slot() {
        let data = tempfile::tempdir().unwrap();
        let (state, owner) = state(data.path());
        for _ in 0..3 * MAX_CONCURRENT_CALLS {
            let (started, is_started) = oneshot::channel();
            let job_owner = owner.clone();
            let work = state.run_read(&owner, move |state| {
                let database = state.data_dir().open_shared(&job_owner)?;
                let _ = started.send(());
                database.read(|db| Ok(db.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?))
            });
            tokio::select! {
                done = work => panic!("{done:?}"),
                started = is_started => started.unwrap(),
            }
        }
        state.run_read(&owner, |_| Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_waits_too_long_for_a_slot_times_out() {
        let data = tempfile::tempdir().unwrap();
        let (mut state, owner) = state(data.path());
        let shared = Arc::get_mut(&mut state.shared).unwrap();
        shared.config.call_timeout = Duration::from_millis(1);
        let mut held = Vec::new();
        for _ in 0..MAX_CONCURRENT_CALLS {
            held.push(state.shared.call_slots.acquire(&owner).await.unwrap());
        }
        let error = state.run_write(&owner, |_| Ok(())).await.unwrap_err();
        assert!(matches!(error, ContextError::TimedOut(_)), "{error:?}");
    }

    /// Opens the shared database of an owner in a call.
    async fn open_in_a_call(state: &AppState, name: &str) {
        let owner = Owner::for_user(name);
        let job_owner = owner.clone();
        let open = move |state: &AppState| state.data_dir().open_shared(&job_owner).map(drop);
        state.run_write(&owner, open).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_database_is_closed_while_others_are_used() {
        let data = tempfile::tempdir().unwrap();
        let (state, _) = state(data.path());
        open_in_a_call(&state, "ada").await;
        for _ in 0..10 {
            open_in_a_call(&state, "bob").await;
            tokio::time::sleep(IDLE_INTERVAL / 2).await;
        }
        assert_eq!(state.data_dir().open_files(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn databases_are_closed_when_idle() {
        let data = tempfile::tempdir().unwrap();
        let (state, owner) = state(data.path());
        let job_owner = owner.clone();
        let open = move |state: &AppState| state.data_dir().open_shared(&job_owner).map(drop);
        state.run_write(&owner, open).await.unwrap();
        assert_eq!(state.data_dir().open_files(), 1);
        for _ in 0..1_000 {
            if state.data_dir().open_files() == 0 {
                break;
            }
            tokio::time::sleep(IDLE_INTERVAL / 4).await;
        }
        assert_eq!(state.data_dir().open_files(), 0);
        let job_owner = owner.clone();
        let again = move |state: &AppState| state.data_dir().open_shared(&job_owner).map(drop);
        state.run_write(&owner, again).await.unwrap();
    }
}
