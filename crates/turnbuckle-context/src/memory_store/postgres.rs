//! Memory in PostgreSQL, for context servers on several machines.
//!
//! All tables are in the schema `turnbuckle`. Statements are not prepared by name, so that a pooler can be in between.

mod branches;
mod candidates;
mod embeddings;
mod error;
mod items;
mod migrations;
mod operations;
mod options;
mod partitions;
mod porter;
mod runtime;
mod session;
mod text;
mod tokens;
mod transfer;

#[cfg(all(test, unix))]
mod tests;

use std::{fmt, sync::Arc};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use hyper_rustls::ConfigBuilderExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

pub use self::{error::PostgresError, options::PostgresOptions};
use self::{
    runtime::ConnectionRuntime,
    session::{Connections, Session, TransactionKind},
};
use super::{
    EmbeddingCoverage, ExportSink, ImportCounts, ImportSource, ItemFilter, ItemNumber,
    ItemSelection, ListPosition, LocalStoreFuture, MemoryStore, MissingEmbedding, OperationRecord,
    OperationState, Partition, PartitionExport, PartitionStats, PartitionVersion, ProjectEntry,
    RemovedItems, SavedItem, Scope, StoreFuture, StoredBranches, TermCandidates, block_on,
};
use crate::{
    Owner,
    code_search::EmbeddingQuery,
    memory::{ItemKind, MemoryItem, PreparedItem, new_id},
};

/// Parameters of a statement with their types.
macro_rules! params {
    ($($value:expr => $type:ident),* $(,)?) => {
        &[$((
            &$value as &(dyn tokio_postgres::types::ToSql + Sync),
            tokio_postgres::types::Type::$type,
        )),*]
    };
}
use params;

/// Stores memory in a PostgreSQL database.
///
/// Connections run on a thread of the store, so that it can be used in any runtime and on any thread.
pub struct PostgresMemoryStore {
    session: Session,
    /// The address, without the password.
    server: String,
}

impl PostgresMemoryStore {
    /// Connects to a database, and creates or updates its tables.
    pub async fn connect(options: PostgresOptions) -> Result<Self, PostgresError> {
        let server = options.to_string();
        let other = |source: Box<dyn std::error::Error + Send + Sync>| PostgresError::Other {
            server: server.clone(),
            source,
        };
        let runtime = ConnectionRuntime::start().map_err(|error| other(error.into()))?;
        let tls = tls().map_err(|error| other(error.into()))?;
        let prepared = prepare_database(options.config.clone(), tls.clone(), server.clone());
        let prepared = runtime.handle().spawn(prepared).await;
        prepared.map_err(|error| other(error.into()))??;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let pool = Pool::builder(Manager::from_config(options.config, tls.clone(), recycling))
            .max_size(options.max_connections)
            .wait_timeout(Some(options.pool_wait))
            .create_timeout(Some(options.pool_wait))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| other(error.into()))?;
        let connections = Arc::new(Connections {
            pool,
            tls,
            statement_timeout: options.statement_timeout,
        });
        Ok(Self {
            session: Session {
                runtime,
                connections,
            },
            server,
        })
    }

    /// As [`connect`](Self::connect), on a thread that may block.
    pub fn connect_blocking(options: PostgresOptions) -> Result<Self, PostgresError> {
        block_on(Self::connect(options))
    }

    /// Returns the address of the database, without the password.
    pub fn server(&self) -> &str {
        &self.server
    }
}

impl fmt::Debug for PostgresMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresMemoryStore")
            .field(&self.server)
            .finish()
    }
}

/// Verifies certificates as the system does.
fn tls() -> Result<MakeRustlsConnect, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .try_with_platform_verifier()?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Opens one connection, checks the database and creates its tables.
async fn prepare_database(
    config: tokio_postgres::Config,
    tls: MakeRustlsConnect,
    server: String,
) -> Result<(), PostgresError> {
    let failed = |error| PostgresError::new(server.clone(), error);
    let (mut client, connection) = config.connect(tls).await.map_err(failed)?;
    let connection = tokio::spawn(connection);
    let encoding = client.query_typed_one("SHOW server_encoding", &[]).await;
    let encoding: String = encoding.and_then(|row| row.try_get(0)).map_err(failed)?;
    if encoding != "UTF8" {
        return Err(PostgresError::WrongEncoding { server, encoding });
    }
    let migrated = migrations::migrate(&mut client, &server).await;
    connection.abort();
    migrated
}

/// Returns the key of a partition in statements: its owner, and its project, which is empty for shared data.
fn key(partition: &Partition) -> (String, String) {
    let project = partition.project_id().unwrap_or_default();
    (partition.owner().id().to_owned(), project.to_owned())
}

impl MemoryStore for PostgresMemoryStore {
    fn create_project<'a>(
        &'a self,
        partition: &'a Partition,
        root: &'a str,
    ) -> StoreFuture<'a, ()> {
        let (partition, root) = (partition.clone(), root.to_owned());
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, root) = (partition.clone(), root.clone());
            Box::pin(async move { partitions::create(tx, &partition, &root).await })
        }))
    }

    fn projects<'a>(&'a self, owner: &'a Owner) -> StoreFuture<'a, Vec<ProjectEntry>> {
        let owner = owner.clone();
        Box::pin(self.session.read(move |tx| {
            let owner = owner.clone();
            Box::pin(async move { partitions::projects(tx, &owner).await })
        }))
    }

    fn root<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Option<String>> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { partitions::root(tx, &partition).await })
        }))
    }

    fn versions<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> StoreFuture<'a, Vec<(Partition, PartitionVersion)>> {
        let owner = owner.clone();
        Box::pin(self.session.read(move |tx| {
            let owner = owner.clone();
            Box::pin(async move { partitions::versions(tx, &owner).await })
        }))
    }

    fn used_bytes<'a>(&'a self, owner: &'a Owner, _quota: u64) -> StoreFuture<'a, u64> {
        let owner = owner.clone();
        Box::pin(self.session.read(move |tx| {
            let owner = owner.clone();
            Box::pin(async move { partitions::used_bytes(tx, &owner).await })
        }))
    }

    fn save<'a>(
        &'a self,
        partition: &'a Partition,
        item: PreparedItem,
    ) -> StoreFuture<'a, SavedItem> {
        let (partition, operation) = (partition.clone(), new_id("op"));
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, item) = (partition.clone(), item.clone());
            let operation = operation.clone();
            Box::pin(async move {
                let place = partitions::lock(tx, &partition).await?;
                let (item, is_new, bytes) = items::store(tx, place, item).await?;
                partitions::change(tx, place, bytes).await?;
                let (kind, result) = PreparedItem::save_operation(&item);
                let state = OperationState::Completed(&result);
                operations::record(tx, place, &operation, &kind, state).await?;
                Ok(SavedItem {
                    item,
                    is_new,
                    operation,
                })
            })
        }))
    }

    fn find<'a>(
        &'a self,
        scope: Scope<'a>,
        id: &'a str,
    ) -> StoreFuture<'a, Option<(Partition, MemoryItem)>> {
        let (scope, id) = (partitions::ScopeKey::from(scope), id.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (scope, id) = (scope.clone(), id.clone());
            Box::pin(async move { items::find(tx, &scope, &id).await })
        }))
    }

    fn find_by_hash<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        hash: &'a str,
    ) -> StoreFuture<'a, Option<MemoryItem>> {
        let (partition, hash) = (partition.clone(), hash.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (partition, hash) = (partition.clone(), hash.clone());
            Box::pin(async move {
                match partitions::find(tx, &partition).await? {
                    Some(place) => items::find_by_hash(tx, place, kind, &hash).await,
                    None => Ok(None),
                }
            })
        }))
    }

    fn list<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        after: Option<ListPosition>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { items::list(tx, &partition, kind, after, limit).await })
        }))
    }

    fn ids<'a>(
        &'a self,
        scope: Scope<'a>,
        kind: ItemKind,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(i64, String)>> {
        let (scope, prefix) = (partitions::ScopeKey::from(scope), prefix.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (scope, prefix) = (scope.clone(), prefix.clone());
            Box::pin(async move { items::ids(tx, &scope, kind, &prefix, limit).await })
        }))
    }

    fn titles<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { items::titles(tx, &partition, kind, limit).await })
        }))
    }

    fn candidates<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        terms: &'a [String],
    ) -> StoreFuture<'a, TermCandidates> {
        let (partition, terms) = (partition.clone(), terms.to_vec());
        Box::pin(self.session.read(move |tx| {
            let (partition, terms) = (partition.clone(), terms.clone());
            Box::pin(async move {
                match partitions::find(tx, &partition).await? {
                    Some(place) => candidates::candidates(tx, place, kind, &terms).await,
                    None => Ok(TermCandidates::without_items(terms.len())),
                }
            })
        }))
    }

    fn items<'a>(
        &'a self,
        partition: &'a Partition,
        selection: ItemSelection<'a>,
    ) -> StoreFuture<'a, Vec<MemoryItem>> {
        let numbers: Vec<i64> = selection.numbers.iter().map(|one| one.get()).collect();
        let branch = selection.branch.map(str::to_owned);
        let (partition, limit) = (partition.clone(), selection.limit);
        Box::pin(self.session.read(move |tx| {
            let (partition, numbers, branch) = (partition.clone(), numbers.clone(), branch.clone());
            Box::pin(async move {
                items::select(tx, &partition, &numbers, branch.as_deref(), limit).await
            })
        }))
    }

    fn nearest<'a>(
        &'a self,
        partition: &'a Partition,
        kind: ItemKind,
        query: &'a EmbeddingQuery,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(ItemNumber, f64)>> {
        let (partition, query) = (partition.clone(), query.clone());
        Box::pin(self.session.read(move |tx| {
            let (partition, query) = (partition.clone(), query.clone());
            Box::pin(async move { embeddings::nearest(tx, &partition, kind, &query, limit).await })
        }))
    }

    fn count_use<'a>(
        &'a self,
        partition: &'a Partition,
        ids: &'a [&'a str],
    ) -> StoreFuture<'a, ()> {
        let ids: Vec<String> = ids.iter().map(|id| text::encode(id).into_owned()).collect();
        let partition = partition.clone();
        Box::pin(self.session.write(TransactionKind::WriteOnce, move |tx| {
            let (partition, ids) = (partition.clone(), ids.clone());
            Box::pin(async move { items::count_use(tx, &partition, &ids).await })
        }))
    }

    fn remove<'a>(
        &'a self,
        partition: &'a Partition,
        filter: &'a ItemFilter,
    ) -> StoreFuture<'a, RemovedItems> {
        let (partition, filter) = (partition.clone(), filter.clone());
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, filter) = (partition.clone(), filter.clone());
            Box::pin(async move {
                let items = match partitions::lock_existing(tx, &partition).await? {
                    Some(place) => items::remove(tx, place, &filter).await?,
                    None => 0,
                };
                Ok(RemovedItems {
                    items,
                    // Old versions of rows stay in the files until the server reuses their space.
                    traceless: items == 0,
                })
            })
        }))
    }

    fn remove_partition<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, bool> {
        let partition = partition.clone();
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let partition = partition.clone();
            Box::pin(async move { partitions::remove(tx, &partition).await })
        }))
    }

    fn branches<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, StoredBranches> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { branches::read(tx, &partition).await })
        }))
    }

    fn create_collection<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        vector_size: u64,
    ) -> StoreFuture<'a, ()> {
        let (partition, label) = (partition.clone(), label.to_owned());
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, label) = (partition.clone(), label.clone());
            Box::pin(async move {
                let place = partitions::lock(tx, &partition).await?;
                branches::create(tx, place, &label, vector_size, true).await?;
                partitions::change(tx, place, 0).await
            })
        }))
    }

    fn remove_branch<'a>(
        &'a self,
        partition: &'a Partition,
        label: &'a str,
        branch: Option<&'a str>,
    ) -> StoreFuture<'a, u64> {
        let (partition, label) = (partition.clone(), label.to_owned());
        let branch = branch.map(str::to_owned);
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, label, branch) = (partition.clone(), label.clone(), branch.clone());
            Box::pin(async move {
                match partitions::lock_existing(tx, &partition).await? {
                    Some(place) => branches::remove(tx, place, &label, branch.as_deref()).await,
                    None => Ok(0),
                }
            })
        }))
    }

    fn record_operation<'a>(
        &'a self,
        partition: &'a Partition,
        kind: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, String> {
        let (partition, kind) = (partition.clone(), kind.to_owned());
        let (id, state) = (new_id("op"), operations::StoredState::from(state));
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, kind) = (partition.clone(), kind.clone());
            let (id, state) = (id.clone(), state.clone());
            Box::pin(async move {
                let place = partitions::find_or_create(tx, &partition).await?;
                operations::record(tx, place, &id, &kind, state.as_state()).await?;
                Ok(id)
            })
        }))
    }

    fn update_operation<'a>(
        &'a self,
        partition: &'a Partition,
        id: &'a str,
        state: OperationState<'a>,
    ) -> StoreFuture<'a, ()> {
        let (partition, id) = (partition.clone(), id.to_owned());
        let state = operations::StoredState::from(state);
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, id, state) = (partition.clone(), id.clone(), state.clone());
            Box::pin(async move {
                let place = partitions::find_or_create(tx, &partition).await?;
                operations::update(tx, place, &id, state.as_state()).await
            })
        }))
    }

    fn find_operation<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a str,
    ) -> StoreFuture<'a, Option<OperationRecord>> {
        let (owner, id) = (owner.clone(), id.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (owner, id) = (owner.clone(), id.clone());
            Box::pin(async move { operations::find(tx, &owner, &id).await })
        }))
    }

    fn running_operations<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, Vec<String>> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { operations::running(tx, &partition).await })
        }))
    }

    fn missing_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        after: Option<ItemNumber>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<MissingEmbedding>> {
        let (partition, model) = (partition.clone(), model.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (partition, model) = (partition.clone(), model.clone());
            Box::pin(async move { embeddings::missing(tx, &partition, &model, after, limit).await })
        }))
    }

    fn save_embeddings<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
        embeddings: Vec<(MissingEmbedding, Vec<f32>)>,
    ) -> StoreFuture<'a, usize> {
        let (partition, model) = (partition.clone(), model.to_owned());
        let embeddings = Arc::new(embeddings);
        Box::pin(self.session.write(TransactionKind::Write, move |tx| {
            let (partition, model) = (partition.clone(), model.clone());
            let embeddings = embeddings.clone();
            Box::pin(async move {
                let place = partitions::lock(tx, &partition).await?;
                embeddings::save(tx, place, &model, &embeddings).await
            })
        }))
    }

    fn embedding_coverage<'a>(
        &'a self,
        partition: &'a Partition,
        model: &'a str,
    ) -> StoreFuture<'a, EmbeddingCoverage> {
        let (partition, model) = (partition.clone(), model.to_owned());
        Box::pin(self.session.read(move |tx| {
            let (partition, model) = (partition.clone(), model.clone());
            Box::pin(async move { embeddings::coverage(tx, &partition, &model).await })
        }))
    }

    fn stats<'a>(&'a self, partition: &'a Partition) -> StoreFuture<'a, PartitionStats> {
        let partition = partition.clone();
        Box::pin(self.session.read(move |tx| {
            let partition = partition.clone();
            Box::pin(async move { partitions::stats(tx, &partition).await })
        }))
    }

    fn export<'a>(
        &'a self,
        partition: &'a Partition,
        sink: ExportSink<'a>,
    ) -> LocalStoreFuture<'a, PartitionExport> {
        Box::pin(transfer::export(&self.session, partition, sink))
    }

    fn import<'a>(
        &'a self,
        partition: &'a Partition,
        entries: ImportSource<'a>,
    ) -> StoreFuture<'a, ImportCounts> {
        Box::pin(transfer::import(&self.session, partition, entries))
    }
}
