//! Where memories are stored: the interface between the context server and a database.
//!
//! A [`MemoryStore`] holds checkpoints, remediations, skills, collections, operations and the embeddings of items.
//! [`SqliteMemoryStore`] keeps them in a [`DataDir`](crate::DataDir), and the feature `postgres` in a PostgreSQL database. The index of repositories and the call log are not part of
//! the trait: they stay in local files.
//!
//! Redaction, limits, ranking, merging and cursors are above the trait. A store lists candidates and never scores an item.

mod candidates;
#[cfg(any(test, feature = "evaluation"))]
pub mod conformance;
mod error;
mod partition;
#[cfg(feature = "postgres")]
pub mod postgres;
mod records;
pub(crate) mod sqlite;
#[cfg(test)]
mod tests;

use std::pin::Pin;

pub use self::{
    candidates::{Cooccurrence, TermCandidates, TermList},
    error::MemoryStoreError,
    partition::{Partition, PartitionVersion, ProjectEntry, Scope},
    records::{
        EmbeddingCoverage, ExportEntry, ImportCounts, ImportEntry, ItemFilter, ItemNumber,
        ItemSelection, ListPosition, MissingEmbedding, OperationRecord, OperationState,
        OperationStatus, PartitionExport, PartitionStats, RemovedItems, SavedItem, StoredBranches,
        embedding_text,
    },
    sqlite::SqliteMemoryStore,
};
pub(crate) use self::{records::MAX_EMBEDDED_BYTES, sqlite::block_on};
use crate::{
    ContextError, Owner,
    code_search::EmbeddingQuery,
    memory::{ItemKind, MemoryItem, PreparedItem},
};

/// The future of an operation.
pub type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, MemoryStoreError>> + Send + 'a>>;

/// The future of an operation that calls back its caller, who may be bound to a thread.
pub type LocalStoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, MemoryStoreError>> + 'a>>;

/// Receives the entries of an export.
pub type ExportSink<'a> = &'a mut dyn FnMut(ExportEntry) -> Result<(), ContextError>;

/// The entries of an import.
pub type ImportSource<'a> =
    &'a mut (dyn Iterator<Item = Result<ImportEntry, ContextError>> + Send + 'a);

/// Stores the memory of all owners.
///
/// **Keys.** Every operation names an owner or a [`Partition`], which contains its owner, and sees only the data of that owner.
/// Reading a partition without data returns nothing and creates nothing. The first write to a shared partition creates it; writing
/// to a project that was not [created](Self::create_project) fails with [`MemoryStoreError::UnknownProject`].
///
/// **Transactions.** Each operation is one transaction unless it says otherwise. When the future of a write returns `Ok`, the
/// change survives a crash; when it returns an error, nothing was changed. No transaction spans two operations: between them
/// other callers may change the data, and an item that was listed may be gone.
///
/// **Cancellation.** A dropped future of a read stops its work soon. A dropped future of a write has changed everything or
/// nothing. [`SqliteMemoryStore`] does its work while it is polled and is ready at the first poll: poll it on a thread that may
/// block. There the work limit of the thread interrupts reads. An implementation with a connection pool cancels its statement
/// on the server instead, and runs a started write to its end.
///
/// **Errors.** [`MemoryStoreError::TryAgain`] means that the same call may succeed later: a lock, a conflict that was retried in
/// vain, a lost connection. An implementation retries conflicts itself. If a connection is lost while a write commits, the
/// outcome is unknown; repeating [`save`](Self::save) is safe, because it finds the item that it stored.
///
/// **Limits.** Callers limit texts, pages and rates. The quota of an owner is checked before writes with
/// [`used_bytes`](Self::used_bytes); a store may enforce it, too, with [`MemoryStoreError::Full`].
///
/// # Implementing it with a database server
///
/// - `block_on` must work: callers that also use local files wait on a thread that may block. So the work continues on threads of
///   the store. No operation may block the thread on which it is polled.
/// - Item numbers come from one counter per partition and kind, so that they follow the order of commits. A sequence of the whole
///   table would also do, except that [`TermCandidates::item_count`] then has to be counted.
/// - [`save`](Self::save) locks the stored duplicate (`SELECT … FOR UPDATE`), merges in Rust, and writes. If two transactions insert
///   the same hash, the one that fails starts again.
/// - The words of an item are made in Rust when it is saved; see [`TermCandidates`]. All terms of a query fit in one statement.
/// - The version of a partition is a number that each of its transactions increments.
/// - The index of a project stays in the local [`DataDir`](crate::DataDir). With SQLite its changes also change the version of the
///   partition, and its bytes count as used, because both are in one file. With another store, callers have to add them.
pub trait MemoryStore: Send + Sync {
    /// Creates the partition of a project, with the folder of the project. If it exists, its folder stays.
    fn create_project<'a>(&'a self, partition: &'a Partition, root: &'a str)
    -> StoreFuture<'a, ()>;

    /// Returns the projects of an owner, ordered by folder. A project that cannot be read does not hide the others.
    fn projects<'a>(&'a self, owner: &'a Owner) -> StoreFuture<'a, Vec<ProjectEntry>>;

    /// Returns the folder of a project; `None` for a shared partition or one without data.
    fn root<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Option<String>>;

    /// Returns the partitions of an owner that have data, with their versions.
    ///
    /// The version of a partition changes with each of its items and collections. This is called before every list of resources, so
    /// it must be cheap.
    fn versions<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> StoreFuture<'a, Vec<(Partition, PartitionVersion)>>;

    /// Returns the number of bytes that an owner occupies, for the quota.
    ///
    /// A result below `quota` may be too large, so that an estimate suffices while it is.
    fn used_bytes<'a>(&'a self, owner: &'a Owner, quota: u64) -> StoreFuture<'a, u64>;

    /// Saves an item, or merges it with the item of the same kind and hash, and records a completed operation.
    ///
    /// The store calls [`PreparedItem::merge_into`] with the stored item, in the transaction that stores the result. Concurrent
    /// saves of one item create one item. The embeddings of the former text are removed. The operation is
    /// [`PreparedItem::save_operation`].
    fn save<'a>(
        &'a self,
        partition: &'a Partition,
        item: PreparedItem,
    ) -> StoreFuture<'a, SavedItem>;

    /// Returns the item with this id and its partition.
    ///
    /// If no item is found and a partition could not be read, returns the error of that partition.
    fn find<'a>(
        &'a self,
        scope: Scope<'a>,
        id: &'a str,
    ) -> StoreFuture<'a, Option<(Partition, MemoryItem)>>;

    /// Returns the item of a kind with this hash; see [`PreparedItem::hash`].
    fn find_by_hash<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        hash: &'a str,
    ) -> StoreFuture<'a, Option<MemoryItem>>;

    /// Returns the newest items of a kind after a position, ordered by time of creation and number, newest first.
    fn list<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        after: Option<ListPosition>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MemoryItem>>;

    /// Returns the ids of a kind with a prefix and the times of their creation, newest first within each partition.
    ///
    /// The limit applies to each partition.
    fn ids<'a>(
        &'a self,
        scope: Scope<'a>,
        kind: ItemKind,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(i64, String)>>;

    /// Returns the titles of a kind, newest first.
    fn titles<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>>;

    /// Lists the items of a kind that contain terms; see [`TermCandidates`] for what a match is.
    fn candidates<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        terms: &'a [String],
    ) -> StoreFuture<'a, TermCandidates>;

    /// Returns the selected items, in the order of the selection. Missing ones are omitted.
    fn items<'a>(
        &'a self,
        partition: &'a Partition,
        selection: ItemSelection<'a>,
    ) -> StoreFuture<'a, Vec<MemoryItem>>;

    /// Returns the items of a kind with the nearest embeddings of a model and their cosine similarity, nearest first.
    ///
    /// Only positive similarities count. Embeddings with other dimensions are ignored.
    fn nearest<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        query: &'a EmbeddingQuery,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(ItemNumber, f64)>>;

    /// Adds 1 to the use counts of items. Unknown ids are ignored, and a store that cannot be written ignores all.
    fn count_use<'a>(&'a self, partition: &'a Partition, ids: &'a [&'a str])
    -> StoreFuture<'a, ()>;

    /// Removes items with their embeddings, in one or more transactions. Items saved during the removal stay.
    ///
    /// If the process dies, the removal is finished later, before the items can be read again or soon afterwards.
    fn remove<'a>(
        &'a self,
        partition: &'a Partition,
        filter: &'a ItemFilter,
    ) -> StoreFuture<'a, RemovedItems>;

    /// Removes a partition with all its data, for good. Returns whether it existed.
    ///
    /// With SQLite, the index of a project is in the same file and removed, too.
    fn remove_partition<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, bool>;

    /// Returns the branches with items, and the collections that were created by name.
    fn branches<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, StoredBranches>;

    /// Creates a collection by its label, or changes the size of its vectors.
    fn create_collection<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        vector_size: u64,
    ) -> StoreFuture<'a, ()>;

    /// Removes the items of a branch, then the collection unless another branch has its label. Returns the number of items.
    fn remove_branch<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        branch: Option<&'a str>,
    ) -> StoreFuture<'a, u64>;

    /// Records an operation and returns its id. Only the newest thousand of a partition are kept.
    fn record_operation<'a>(
        &'a self,
        partition: &'a Partition,
        kind: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, String>;

    /// Updates an operation, also with an unchanged state. One that has ended does not change.
    fn update_operation<'a>(
        &'a self,
        partition: &'a Partition,
        id: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, ()>;

    /// Returns the operation of an owner with this id. One without an update for an hour is reported as failed.
    fn find_operation<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a str,
    ) -> StoreFuture<'a, Option<OperationRecord>>;

    /// Returns the ids of at most twenty running operations, newest first.
    fn running_operations<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Vec<String>>;

    /// Returns the texts of items without an embedding of a model, after an item and ordered by number.
    fn missing_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        after: Option<ItemNumber>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MissingEmbedding>>;

    /// Stores embeddings of length 1 and returns how many. Items with a changed text are skipped.
    fn save_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        embeddings: Vec<(MissingEmbedding, Vec<f32>)>,
    ) -> StoreFuture<'a, usize>;

    /// Counts the items that have an embedding of a model, and all items.
    fn embedding_coverage<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
    ) -> StoreFuture<'a, EmbeddingCoverage>;

    /// Returns statistics about a partition.
    fn stats<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, PartitionStats>;

    /// Passes one snapshot of a partition to a sink: collections by label, then items by kind and number.
    ///
    /// An error of the sink ends the export. Damaged parts are skipped and described in the result.
    fn export<'a>(
        &'a self,
        partition: &'a Partition,
        sink: ExportSink<'a>,
    ) -> LocalStoreFuture<'a, PartitionExport>;

    /// Stores entries in transactions of limited length, so that other writers do not wait.
    ///
    /// An item replaces its duplicate only if it was saved later. After an error, earlier entries may be stored; a repeated
    /// import does not store them twice.
    fn import<'a>(
        &'a self,
        partition: &'a Partition,
        entries: ImportSource<'a>,
    ) -> StoreFuture<'a, ImportCounts>;
}
