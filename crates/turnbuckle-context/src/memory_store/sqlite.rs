//! Memory in SQLite files: one per project, and one for the data that an owner shares between projects.
//!
//! The operations do their work at the first poll, and block. [`block_on`] runs them on a thread that may block. A read stops when
//! the work limit of the thread is exceeded.

pub(crate) mod branches;
pub(crate) mod candidates;
pub(crate) mod embeddings;
pub(crate) mod items;
pub(crate) mod operations;
pub(crate) mod partitions;
pub(crate) mod transfer;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

use rusqlite::Transaction;

pub use self::partitions::OpenPartition;
use super::{
    EmbeddingCoverage, ExportSink, ImportCounts, ImportSource, ItemFilter, ItemNumber,
    ItemSelection, ListPosition, LocalStoreFuture, MemoryStore, MemoryStoreError, MissingEmbedding,
    OperationRecord, OperationState, Partition, PartitionExport, PartitionStats, PartitionVersion,
    ProjectEntry, RemovedItems, SavedItem, Scope, StoreFuture, StoredBranches, TermCandidates,
};
use crate::{
    ContextError, Database, Owner,
    code_search::EmbeddingQuery,
    memory::{ItemKind, MemoryItem, PreparedItem},
    storage::{
        database::TransactionError,
        pending_delete::{PendingDelete, delete_database_items},
    },
};

/// Stores memory in SQLite files.
#[derive(Debug)]
pub struct SqliteMemoryStore<P> {
    partitions: P,
}

impl<P: OpenPartition> SqliteMemoryStore<P> {
    /// Creates a store on a [`DataDir`](crate::DataDir).
    pub fn new(partitions: P) -> Self {
        Self { partitions }
    }

    /// Reads a partition in one transaction; a partition without data is empty.
    fn read<T: Default>(
        &self,
        partition: &Partition,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, MemoryStoreError> {
        match self.partitions.open(partition)? {
            Some(database) => Ok(database.read(work)?),
            None => Ok(T::default()),
        }
    }

    /// Opens a partition for writing.
    fn open_to_write(&self, partition: &Partition) -> Result<P::Open, MemoryStoreError> {
        match self.partitions.open(partition)? {
            Some(database) => Ok(database),
            None if partition.project_id().is_some() => Err(MemoryStoreError::UnknownProject),
            None => Ok(self.partitions.create_shared(partition.owner())?),
        }
    }

    /// Writes to a partition in one transaction.
    fn write<T>(
        &self,
        partition: &Partition,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, MemoryStoreError> {
        Ok(self.open_to_write(partition)?.write(work)?)
    }

    /// Searches the partitions of an owner until one has a result. An unreadable partition does not hide the others.
    fn find_in_partitions<T>(
        &self,
        owner: &Owner,
        find: impl Fn(&Database) -> Result<Option<T>, ContextError>,
    ) -> Result<Option<(Partition, T)>, MemoryStoreError> {
        let mut last_error = None;
        for partition in self.partitions.of_owner(owner)? {
            let opened = self.partitions.open(&partition);
            let found = opened.and_then(|database| match database {
                Some(database) => find(&database),
                None => Ok(None),
            });
            match found {
                Ok(Some(found)) => return Ok(Some((partition, found))),
                Ok(None) => {}
                // Another partition may contain it.
                Err(error) => last_error = Some(error),
            }
        }
        last_error.map_or(Ok(None), |error| Err(error.into()))
    }
}

impl<P: OpenPartition> MemoryStore for SqliteMemoryStore<P> {
    fn create_project<'a>(
        &'a self,
        partition: &'a Partition,
        root: &'a str,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move { Ok(self.partitions.create_project(partition, root)?) })
    }

    fn projects<'a>(&'a self, owner: &'a Owner) -> StoreFuture<'a, Vec<ProjectEntry>> {
        Box::pin(async move { Ok(partitions::projects(&self.partitions, owner)?) })
    }

    fn root<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Option<String>> {
        Box::pin(async move { self.read(partition, |db| Ok(partitions::root(db)?)) })
    }

    fn versions<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> StoreFuture<'a, Vec<(Partition, PartitionVersion)>> {
        Box::pin(async move { Ok(self.partitions.versions(owner)?) })
    }

    fn used_bytes<'a>(&'a self, owner: &'a Owner, quota: u64) -> StoreFuture<'a, u64> {
        Box::pin(async move { Ok(self.partitions.used_bytes(owner, quota)?) })
    }

    fn save<'a>(
        &'a self,
        partition: &'a Partition,
        item: PreparedItem,
    ) -> StoreFuture<'a, SavedItem> {
        Box::pin(async move {
            self.write(partition, |db| {
                let (item, is_new) = items::store(db, item)?;
                let (kind, result) = PreparedItem::save_operation(&item);
                let operation = operations::record(db, &kind, OperationState::Completed(&result))?;
                Ok(SavedItem {
                    item,
                    is_new,
                    operation,
                })
            })
        })
    }

    fn find<'a>(
        &'a self,
        scope: Scope<'a>,
        id: &'a str,
    ) -> StoreFuture<'a, Option<(Partition, MemoryItem)>> {
        Box::pin(async move {
            match scope {
                Scope::Partition(partition) => {
                    let found = self.read(partition, |db| Ok(items::find(db, id)?))?;
                    Ok(found.map(|item| (partition.clone(), item)))
                }
                Scope::Owner(owner) => self.find_in_partitions(owner, |database| {
                    database.read(|db| Ok(items::find(db, id)?))
                }),
            }
        })
    }

    fn find_by_hash<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        hash: &'a str,
    ) -> StoreFuture<'a, Option<MemoryItem>> {
        Box::pin(async move { self.read(partition, |db| Ok(items::find_by_hash(db, kind, hash)?)) })
    }

    fn list<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        after: Option<ListPosition>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        Box::pin(async move { self.read(partition, |db| Ok(items::list(db, kind, after, limit)?)) })
    }

    fn ids<'a>(
        &'a self,
        scope: Scope<'a>,
        kind: ItemKind,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(i64, String)>> {
        Box::pin(async move {
            let owner = match scope {
                Scope::Partition(partition) => {
                    return self.read(partition, |db| Ok(items::ids(db, kind, prefix, limit)?));
                }
                Scope::Owner(owner) => owner,
            };
            let mut ids = Vec::new();
            for partition in self.partitions.of_owner(owner)? {
                match self.partitions.open(&partition) {
                    Ok(Some(database)) => {
                        ids.extend(database.read(|db| Ok(items::ids(db, kind, prefix, limit)?))?);
                    }
                    // An unreadable project does not hide the others.
                    Ok(None) => {}
                    Err(_) if partition.project_id().is_some() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(ids)
        })
    }

    fn titles<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move { self.read(partition, |db| Ok(items::titles(db, kind, limit)?)) })
    }

    fn candidates<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        terms: &'a [String],
    ) -> StoreFuture<'a, TermCandidates> {
        Box::pin(async move {
            match self.partitions.open(partition)? {
                Some(database) => {
                    Ok(database.read(|db| Ok(candidates::candidates(db, kind, terms)?))?)
                }
                None => Ok(TermCandidates::without_items(terms.len())),
            }
        })
    }

    fn items<'a>(
        &'a self,
        partition: &'a Partition,
        selection: ItemSelection<'a>,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        Box::pin(async move { self.read(partition, |db| Ok(items::select(db, &selection)?)) })
    }

    fn nearest<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        query: &'a EmbeddingQuery,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(ItemNumber, f64)>> {
        Box::pin(async move {
            self.read(partition, |db| {
                Ok(candidates::nearest(db, kind, query, limit)?)
            })
        })
    }

    fn count_use<'a>(
        &'a self,
        partition: &'a Partition,
        ids: &'a [&'a str],
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            match self.partitions.open(partition)? {
                Some(database) if !ids.is_empty() && !database.is_read_only() => {
                    Ok(database.write(|db| Ok(items::count_use(db, ids)?))?)
                }
                _ => Ok(()),
            }
        })
    }

    fn remove<'a>(
        &'a self,
        partition: &'a Partition,
        filter: &'a ItemFilter,
    ) -> StoreFuture<'a, RemovedItems> {
        Box::pin(async move {
            let Some(database) = self.partitions.open(partition)? else {
                return Ok(RemovedItems {
                    items: 0,
                    traceless: true,
                });
            };
            let pending = PendingDelete::from(filter.clone());
            Ok(delete_database_items(&database, &pending)?)
        })
    }

    fn remove_partition<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.partitions.remove(partition)?) })
    }

    fn branches<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, StoredBranches> {
        Box::pin(async move { self.read(partition, |db| Ok(branches::read(db)?)) })
    }

    fn create_collection<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        vector_size: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.write(partition, |db| {
                Ok(branches::create(db, label, vector_size)?)
            })
        })
    }

    fn remove_branch<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        branch: Option<&'a str>,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            match self.partitions.open(partition)? {
                Some(database) => Ok(branches::remove(&database, label, branch)?),
                None => Ok(0),
            }
        })
    }

    fn record_operation<'a>(
        &'a self,
        partition: &'a Partition,
        kind: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, String> {
        Box::pin(
            async move { self.write(partition, |db| Ok(operations::record(db, kind, state)?)) },
        )
    }

    fn update_operation<'a>(
        &'a self,
        partition: &'a Partition,
        id: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.write(partition, |db| Ok(operations::update(db, id, state)?)) })
    }

    fn find_operation<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a str,
    ) -> StoreFuture<'a, Option<OperationRecord>> {
        Box::pin(async move {
            let found = self.find_in_partitions(owner, |database| {
                database.read(|db| Ok(operations::find(db, id)?))
            })?;
            Ok(found.map(|(_, operation)| operation))
        })
    }

    fn running_operations<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move { self.read(partition, |db| Ok(operations::running(db)?)) })
    }

    fn missing_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        after: Option<ItemNumber>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MissingEmbedding>> {
        Box::pin(async move {
            self.read(partition, |db| {
                Ok(embeddings::missing(db, model, after, limit)?)
            })
        })
    }

    fn save_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        embeddings: Vec<(MissingEmbedding, Vec<f32>)>,
    ) -> StoreFuture<'a, usize> {
        Box::pin(async move {
            self.write(partition, |db| {
                Ok(embeddings::save(db, model, &embeddings)?)
            })
        })
    }

    fn embedding_coverage<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
    ) -> StoreFuture<'a, EmbeddingCoverage> {
        Box::pin(async move { self.read(partition, |db| Ok(embeddings::coverage(db, model)?)) })
    }

    fn stats<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, PartitionStats> {
        Box::pin(async move { self.read(partition, |db| Ok(partitions::stats(db)?)) })
    }

    fn export<'a>(
        &'a self,
        partition: &'a Partition,
        sink: ExportSink<'a>,
    ) -> LocalStoreFuture<'a, PartitionExport> {
        Box::pin(async move { self.read(partition, |db| transfer::export(db, sink)) })
    }

    fn import<'a>(
        &'a self,
        partition: &'a Partition,
        entries: ImportSource<'a>,
    ) -> StoreFuture<'a, ImportCounts> {
        Box::pin(async move {
            let database = self.open_to_write(partition)?;
            Ok(transfer::import(&database, entries)?)
        })
    }
}

/// Returns the result of work on a store. Call it on a thread that may block.
///
/// Work on a [`SqliteMemoryStore`] is done at the first poll. Work on another store continues on threads of that store, or of the
/// runtime that this thread belongs to, while this one waits.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return done;
    }
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Wakes a thread that waits for a store.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
