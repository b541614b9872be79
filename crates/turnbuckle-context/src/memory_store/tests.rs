//! Runs the conformance tests on SQLite, and on broken stores, which must fail them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use super::{conformance, *};
use crate::{DataDir, storage::lock};

/// Creates stores in temporary folders, which exist as long as this.
#[derive(Default)]
struct TestStores {
    folders: Mutex<Vec<tempfile::TempDir>>,
}

impl TestStores {
    fn sqlite(&self) -> Arc<dyn MemoryStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteMemoryStore::new(Arc::new(DataDir::new(folder.path())));
        lock(&self.folders).push(folder);
        Arc::new(store)
    }
}

/// Runs the conformance tests on a store with a defect. Returns whether it passes.
fn passes(defect: Option<StoreDefect>) -> bool {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let stores = TestStores::default();
    let make = async || {
        let inner = stores.sqlite();
        let store: Arc<dyn MemoryStore> = Arc::new(DefectiveStore { inner, defect });
        store
    };
    let run = || runtime.block_on(conformance::memory_store(make));
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}

#[test]
fn sqlite_passes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let stores = TestStores::default();
    runtime.block_on(conformance::memory_store(async || stores.sqlite()));
}

#[test]
fn a_wrapper_without_a_defect_passes() {
    assert!(passes(None));
}

#[test]
fn a_store_that_ignores_a_part_of_the_key_fails() {
    assert!(!passes(Some(StoreDefect::IgnoresOwner)));
    assert!(!passes(Some(StoreDefect::IgnoresProject)));
    assert!(!passes(Some(StoreDefect::CreatesProjects)));
}

#[test]
fn a_store_that_saves_wrongly_fails() {
    assert!(!passes(Some(StoreDefect::ForgetsMerges)));
    assert!(!passes(Some(StoreDefect::ForgetsUses)));
    assert!(!passes(Some(StoreDefect::ForgetsOperations)));
    assert!(!passes(Some(StoreDefect::ForgetsChangedVersions)));
}

#[test]
fn a_store_that_lists_wrongly_fails() {
    assert!(!passes(Some(StoreDefect::IgnoresPositions)));
    assert!(!passes(Some(StoreDefect::IgnoresBranches)));
    assert!(!passes(Some(StoreDefect::SortsSelections)));
}

#[test]
fn a_store_with_other_candidates_fails() {
    assert!(!passes(Some(StoreDefect::HasStopWords)));
    assert!(!passes(Some(StoreDefect::SplitsPhrases)));
    assert!(!passes(Some(StoreDefect::KeepsDiacritics)));
    assert!(!passes(Some(StoreDefect::HidesCuts)));
}

#[test]
fn a_store_that_removes_or_imports_wrongly_fails() {
    assert!(!passes(Some(StoreDefect::IgnoresTimes)));
    assert!(!passes(Some(StoreDefect::ImportsOlderItems)));
    assert!(!passes(Some(StoreDefect::KeepsPartitions)));
}

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq)]
enum StoreDefect {
    IgnoresOwner,
    IgnoresProject,
    /// Writing creates a project.
    CreatesProjects,
    /// A duplicate replaces the stored item.
    ForgetsMerges,
    ForgetsUses,
    ForgetsOperations,
    ForgetsChangedVersions,
    /// Each page of a list is the first one.
    IgnoresPositions,
    /// A selection has items of all branches.
    IgnoresBranches,
    /// A selection is ordered by number.
    SortsSelections,
    HasStopWords,
    /// The last word of a phrase suffices.
    SplitsPhrases,
    /// A term with diacritics matches nothing.
    KeepsDiacritics,
    /// No list is marked as cut.
    HidesCuts,
    /// A removal removes items of any time.
    IgnoresTimes,
    /// An imported item replaces a later one.
    ImportsOlderItems,
    /// A removed partition stays.
    KeepsPartitions,
}

/// A store with a defect.
struct DefectiveStore {
    inner: Arc<dyn MemoryStore>,
    defect: Option<StoreDefect>,
}

impl DefectiveStore {
    fn has(&self, defect: StoreDefect) -> bool {
        self.defect == Some(defect)
    }

    fn owner(&self, owner: &Owner) -> Owner {
        if self.has(StoreDefect::IgnoresOwner) {
            Owner::for_user("everyone")
        } else {
            owner.clone()
        }
    }

    fn partition(&self, partition: &Partition) -> Partition {
        let owner = self.owner(partition.owner());
        match partition.project_id() {
            Some(_) if self.has(StoreDefect::IgnoresProject) => {
                Partition::project(&owner, "00000000000000ff")
            }
            Some(id) => Partition::project(&owner, id),
            None => Partition::shared(&owner),
        }
    }

    /// Returns the partition to write to.
    async fn partition_to_write(
        &self,
        partition: &Partition,
    ) -> Result<Partition, MemoryStoreError> {
        let partition = self.partition(partition);
        if self.has(StoreDefect::CreatesProjects) {
            self.inner.create_project(&partition, "/unknown").await?;
        }
        Ok(partition)
    }

    fn terms(&self, terms: &[String]) -> Vec<String> {
        let changed = |term: &String| match self.defect {
            Some(StoreDefect::HasStopWords) if term == "the" => "absent".to_owned(),
            Some(StoreDefect::KeepsDiacritics) if !term.is_ascii() => "absent".to_owned(),
            Some(StoreDefect::SplitsPhrases) => term.rsplit(' ').next().unwrap_or(term).to_owned(),
            _ => term.clone(),
        };
        terms.iter().map(changed).collect()
    }
}

/// Forwards an operation with the partition of the defective store.
macro_rules! forward {
    ($self:ident, $partition:ident, $operation:ident($($argument:expr),*)) => {
        Box::pin(async move {
            let partition = $self.partition($partition);
            $self.inner.$operation(&partition, $($argument),*).await
        })
    };
}

/// Forwards an operation of an owner or scope.
macro_rules! forward_owner {
    ($self:ident, $owner:ident, $operation:ident($($argument:expr),*)) => {
        Box::pin(async move {
            let owner = $self.owner($owner);
            $self.inner.$operation(&owner, $($argument),*).await
        })
    };
}

macro_rules! forward_scope {
    ($self:ident, $scope:ident, $operation:ident($($argument:expr),*)) => {
        Box::pin(async move {
            match $scope {
                Scope::Partition(partition) => {
                    let partition = $self.partition(partition);
                    $self.inner.$operation(Scope::Partition(&partition), $($argument),*).await
                }
                Scope::Owner(owner) => {
                    let owner = $self.owner(owner);
                    $self.inner.$operation(Scope::Owner(&owner), $($argument),*).await
                }
            }
        })
    };
}

impl MemoryStore for DefectiveStore {
    fn create_project<'a>(
        &'a self,
        partition: &'a Partition,
        root: &'a str,
    ) -> StoreFuture<'a, ()> {
        forward!(self, partition, create_project(root))
    }

    fn projects<'a>(&'a self, owner: &'a Owner) -> StoreFuture<'a, Vec<ProjectEntry>> {
        forward_owner!(self, owner, projects())
    }

    fn root<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Option<String>> {
        forward!(self, partition, root())
    }

    fn versions<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> StoreFuture<'a, Vec<(Partition, PartitionVersion)>> {
        Box::pin(async move {
            let mut versions = self.inner.versions(&self.owner(owner)).await?;
            if self.has(StoreDefect::ForgetsChangedVersions) {
                for (_, version) in &mut versions {
                    *version = PartitionVersion::new(1);
                }
            }
            Ok(versions)
        })
    }

    fn used_bytes<'a>(&'a self, owner: &'a Owner, quota: u64) -> StoreFuture<'a, u64> {
        forward_owner!(self, owner, used_bytes(quota))
    }

    fn save<'a>(
        &'a self,
        partition: &'a Partition,
        item: PreparedItem,
    ) -> StoreFuture<'a, SavedItem> {
        Box::pin(async move {
            let partition = self.partition_to_write(partition).await?;
            let known = self
                .inner
                .find_by_hash(&partition, item.item().kind, item.hash());
            if let Some(known) = known
                .await?
                .filter(|_| self.has(StoreDefect::ForgetsMerges))
            {
                self.inner
                    .remove(&partition, &ItemFilter::Id(known.id))
                    .await?;
            }
            self.inner.save(&partition, item).await
        })
    }

    fn find<'a>(
        &'a self,
        scope: Scope<'a>,
        id: &'a str,
    ) -> StoreFuture<'a, Option<(Partition, MemoryItem)>> {
        forward_scope!(self, scope, find(id))
    }

    fn find_by_hash<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        hash: &'a str,
    ) -> StoreFuture<'a, Option<MemoryItem>> {
        forward!(self, partition, find_by_hash(kind, hash))
    }

    fn list<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        after: Option<ListPosition>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        let after = after.filter(|_| !self.has(StoreDefect::IgnoresPositions));
        forward!(self, partition, list(kind, after, limit))
    }

    fn ids<'a>(
        &'a self,
        scope: Scope<'a>,
        kind: ItemKind,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(i64, String)>> {
        forward_scope!(self, scope, ids(kind, prefix, limit))
    }

    fn titles<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        forward!(self, partition, titles(kind, limit))
    }

    fn candidates<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        terms: &'a [String],
    ) -> StoreFuture<'a, TermCandidates> {
        Box::pin(async move {
            let (partition, terms) = (self.partition(partition), self.terms(terms));
            let mut listed = self.inner.candidates(&partition, kind, &terms).await?;
            if self.has(StoreDefect::HidesCuts) {
                listed.lists.iter_mut().for_each(|list| list.is_cut = false);
            }
            Ok(listed)
        })
    }

    fn items<'a>(
        &'a self,
        partition: &'a Partition,
        mut selection: ItemSelection<'a>,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        Box::pin(async move {
            if self.has(StoreDefect::IgnoresBranches) {
                selection.branch = None;
            }
            let mut items = self
                .inner
                .items(&self.partition(partition), selection)
                .await?;
            if self.has(StoreDefect::SortsSelections) {
                items.sort_by_key(|item| item.number);
            }
            Ok(items)
        })
    }

    fn nearest<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        query: &'a EmbeddingQuery,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(ItemNumber, f64)>> {
        forward!(self, partition, nearest(kind, query, limit))
    }

    fn count_use<'a>(
        &'a self,
        partition: &'a Partition,
        ids: &'a [&'a str],
    ) -> StoreFuture<'a, ()> {
        let ids = if self.has(StoreDefect::ForgetsUses) {
            &[]
        } else {
            ids
        };
        forward!(self, partition, count_use(ids))
    }

    fn remove<'a>(
        &'a self,
        partition: &'a Partition,
        filter: &'a ItemFilter,
    ) -> StoreFuture<'a, RemovedItems> {
        Box::pin(async move {
            let mut filter = filter.clone();
            if let ItemFilter::Before { time, .. } = &mut filter
                && self.has(StoreDefect::IgnoresTimes)
            {
                *time = i64::MAX;
            }
            self.inner.remove(&self.partition(partition), &filter).await
        })
    }

    fn remove_partition<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, bool> {
        if self.has(StoreDefect::KeepsPartitions) {
            return Box::pin(async { Ok(true) });
        }
        forward!(self, partition, remove_partition())
    }

    fn branches<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, StoredBranches> {
        forward!(self, partition, branches())
    }

    fn create_collection<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        vector_size: u64,
    ) -> StoreFuture<'a, ()> {
        forward!(self, partition, create_collection(label, vector_size))
    }

    fn remove_branch<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        branch: Option<&'a str>,
    ) -> StoreFuture<'a, u64> {
        forward!(self, partition, remove_branch(label, branch))
    }

    fn record_operation<'a>(
        &'a self,
        partition: &'a Partition,
        kind: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, String> {
        Box::pin(async move {
            let partition = self.partition_to_write(partition).await?;
            self.inner.record_operation(&partition, kind, state).await
        })
    }

    fn update_operation<'a>(
        &'a self,
        partition: &'a Partition,
        id: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, ()> {
        if self.has(StoreDefect::ForgetsOperations) {
            return Box::pin(async { Ok(()) });
        }
        forward!(self, partition, update_operation(id, state))
    }

    fn find_operation<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a str,
    ) -> StoreFuture<'a, Option<OperationRecord>> {
        forward_owner!(self, owner, find_operation(id))
    }

    fn running_operations<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Vec<String>> {
        forward!(self, partition, running_operations())
    }

    fn missing_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        after: Option<ItemNumber>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MissingEmbedding>> {
        forward!(self, partition, missing_embeddings(model, after, limit))
    }

    fn save_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        embeddings: Vec<(MissingEmbedding, Vec<f32>)>,
    ) -> StoreFuture<'a, usize> {
        forward!(self, partition, save_embeddings(model, embeddings))
    }

    fn embedding_coverage<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
    ) -> StoreFuture<'a, EmbeddingCoverage> {
        forward!(self, partition, embedding_coverage(model))
    }

    fn stats<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, PartitionStats> {
        forward!(self, partition, stats())
    }

    fn export<'a>(
        &'a self,
        partition: &'a Partition,
        sink: ExportSink<'a>,
    ) -> LocalStoreFuture<'a, PartitionExport> {
        forward!(self, partition, export(sink))
    }

    fn import<'a>(
        &'a self,
        partition: &'a Partition,
        entries: ImportSource<'a>,
    ) -> StoreFuture<'a, ImportCounts> {
        let later = self.has(StoreDefect::ImportsOlderItems);
        Box::pin(async move {
            let mut entries = entries.map(|mut entry| {
                if let Ok(ImportEntry::Item { item, .. }) = &mut entry
                    && later
                {
                    item.item.updated += 1_000_000;
                }
                entry
            });
            self.inner
                .import(&self.partition(partition), &mut entries)
                .await
        })
    }
}
