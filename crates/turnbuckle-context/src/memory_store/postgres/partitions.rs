//! Partitions as table rows. Writers lock the row of their partition.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use tokio_postgres::{Row, Transaction};

use super::{error::AttemptError, key, params, text};
use crate::{
    Owner,
    memory::ItemKind,
    memory_store::{
        MemoryStoreError, Partition, PartitionStats, PartitionVersion, ProjectEntry, Scope,
    },
};

/// The id of a partition in other tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionId(pub(super) i64);

impl PartitionId {
    /// Returns the word that names a partition and a kind.
    pub(super) fn key(self, kind: ItemKind) -> String {
        format!("{}.{}", self.0, kind_number(kind))
    }
}

/// Returns the number of a kind in table rows.
pub(super) fn kind_number(kind: ItemKind) -> i16 {
    match kind {
        ItemKind::Checkpoint => 0,
        ItemKind::Remediation => 1,
        ItemKind::Skill => 2,
    }
}

/// The partitions of a [`Scope`]: an owner, and perhaps the project.
#[derive(Clone, Debug)]
pub(super) struct ScopeKey {
    pub(super) owner: Owner,
    pub(super) project: Option<String>,
}

impl From<Scope<'_>> for ScopeKey {
    fn from(scope: Scope<'_>) -> Self {
        match scope {
            Scope::Partition(partition) => Self {
                owner: partition.owner().clone(),
                project: Some(key(partition).1),
            },
            Scope::Owner(owner) => Self {
                owner: owner.clone(),
                project: None,
            },
        }
    }
}

impl ScopeKey {
    /// Returns a partition by the name of its project.
    pub(super) fn partition(&self, project: &str) -> Partition {
        match project {
            "" => Partition::shared(&self.owner),
            id => Partition::project(&self.owner, id),
        }
    }
}

/// Creates the partition of a project, unless it exists.
pub(super) async fn create(
    tx: &Transaction<'_>,
    partition: &Partition,
    root: &str,
) -> Result<(), AttemptError> {
    let (owner, project) = key(partition);
    let known =
        "SELECT root IS NOT NULL FROM turnbuckle.partition WHERE owner = $1 AND project = $2";
    let known = tx
        .query_typed_opt(known, params![owner => TEXT, project => TEXT])
        .await?;
    if let Some(known) = known
        && known.try_get(0)?
    {
        return Ok(());
    }
    let insert = "INSERT INTO turnbuckle.partition AS p (owner, project, root) VALUES ($1, $2, $3) \
                  ON CONFLICT (owner, project) DO UPDATE SET root = coalesce(p.root, excluded.root)";
    let root = partition.project_id().map(|_| text::encode(root));
    let parameters = params![owner => TEXT, project => TEXT, root => TEXT];
    tx.execute_typed(insert, parameters).await?;
    Ok(())
}

/// Returns the id of a partition, if it exists.
pub(super) async fn find(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<Option<PartitionId>, AttemptError> {
    select_id(tx, partition, "").await
}

/// Locks a partition, if it exists.
pub(super) async fn lock_existing(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<Option<PartitionId>, AttemptError> {
    select_id(tx, partition, "FOR NO KEY UPDATE").await
}

async fn select_id(
    tx: &Transaction<'_>,
    partition: &Partition,
    lock: &str,
) -> Result<Option<PartitionId>, AttemptError> {
    let (owner, project) = key(partition);
    let select =
        format!("SELECT id FROM turnbuckle.partition WHERE owner = $1 AND project = $2 {lock}");
    let row = tx
        .query_typed_opt(&select, params![owner => TEXT, project => TEXT])
        .await?;
    Ok(row.map(|row| row.try_get(0).map(PartitionId)).transpose()?)
}

/// Locks a partition to write to it. A shared one is created.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<PartitionId, AttemptError> {
    match lock_existing(tx, partition).await? {
        Some(id) => Ok(id),
        None => create_shared(tx, partition).await,
    }
}

/// Returns the id of a partition. A shared one is created.
pub(super) async fn find_or_create(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<PartitionId, AttemptError> {
    match find(tx, partition).await? {
        Some(id) => Ok(id),
        None => create_shared(tx, partition).await,
    }
}

async fn create_shared(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<PartitionId, AttemptError> {
    if partition.project_id().is_some() {
        return Err(MemoryStoreError::UnknownProject.into());
    }
    // If another transaction creates it, this one waits for its end, fails and starts again.
    let (owner, _) = key(partition);
    let insert = "INSERT INTO turnbuckle.partition (owner, project) VALUES ($1, '') RETURNING id";
    let row = tx.query_typed_one(insert, params![owner => TEXT]).await?;
    Ok(PartitionId(row.try_get(0)?))
}

/// Counts a change of a locked partition, and of its size.
pub(super) async fn change(
    tx: &Transaction<'_>,
    id: PartitionId,
    bytes: i64,
) -> Result<(), AttemptError> {
    let update = "UPDATE turnbuckle.partition SET version = version + 1, bytes = bytes + $2 \
                  WHERE id = $1";
    tx.execute_typed(update, params![id.0 => INT8, bytes => INT8])
        .await?;
    Ok(())
}

/// Removes a partition with all its data. Returns whether it existed.
pub(super) async fn remove(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<bool, AttemptError> {
    let (owner, project) = key(partition);
    let delete = "DELETE FROM turnbuckle.partition WHERE owner = $1 AND project = $2";
    let parameters = params![owner => TEXT, project => TEXT];
    Ok(tx.execute_typed(delete, parameters).await? > 0)
}

/// Returns the projects of an owner, ordered by folder.
pub(super) async fn projects(
    tx: &Transaction<'_>,
    owner: &Owner,
) -> Result<Vec<ProjectEntry>, AttemptError> {
    let select = "SELECT project, root FROM turnbuckle.partition \
                  WHERE owner = $1 AND root IS NOT NULL ORDER BY root COLLATE \"C\"";
    let rows = tx.query_typed(select, params![owner.id() => TEXT]).await?;
    let project = |row: &Row| {
        Ok(ProjectEntry {
            id: row.try_get(0)?,
            root: text::decode(row.try_get(1)?),
        })
    };
    rows.iter().map(project).collect()
}

/// Returns the folder of a project.
pub(super) async fn root(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<Option<String>, AttemptError> {
    let (owner, project) = key(partition);
    let select = "SELECT root FROM turnbuckle.partition WHERE owner = $1 AND project = $2";
    let row = tx
        .query_typed_opt(select, params![owner => TEXT, project => TEXT])
        .await?;
    let root = row
        .map(|row| row.try_get::<_, Option<String>>(0))
        .transpose()?;
    Ok(root.flatten().map(text::decode))
}

/// Returns the partitions of an owner and their versions, the shared one first.
pub(super) async fn versions(
    tx: &Transaction<'_>,
    owner: &Owner,
) -> Result<Vec<(Partition, PartitionVersion)>, AttemptError> {
    let select = "SELECT project, id, version FROM turnbuckle.partition WHERE owner = $1 \
                  ORDER BY project COLLATE \"C\"";
    let rows = tx.query_typed(select, params![owner.id() => TEXT]).await?;
    let scope = ScopeKey::from(Scope::Owner(owner));
    let version = |row: &Row| {
        // A removed partition that is created again has another id.
        let mut hasher = DefaultHasher::new();
        let stamp: (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        stamp.hash(&mut hasher);
        let partition = scope.partition(row.try_get(0)?);
        Ok((partition, PartitionVersion::new(hasher.finish())))
    };
    rows.iter().map(version).collect()
}

/// Returns the size of the data of an owner.
pub(super) async fn used_bytes(tx: &Transaction<'_>, owner: &Owner) -> Result<u64, AttemptError> {
    let select =
        "SELECT coalesce(sum(bytes), 0)::bigint FROM turnbuckle.partition WHERE owner = $1";
    let row = tx
        .query_typed_one(select, params![owner.id() => TEXT])
        .await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0))
}

/// Returns statistics about the items of a partition.
pub(super) async fn stats(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<PartitionStats, AttemptError> {
    let mut stats = PartitionStats::default();
    let Some(id) = find(tx, partition).await? else {
        return Ok(stats);
    };
    let select = "SELECT kind, count(*), max(updated) FROM turnbuckle.item \
                  WHERE partition = $1 GROUP BY kind";
    for row in tx.query_typed(select, params![id.0 => INT8]).await? {
        let (kind, count, newest): (i16, i64, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let kinds = ItemKind::ALL.into_iter();
        for kind in kinds.filter(|known| kind_number(*known) == kind) {
            stats.items.insert(kind, count.unsigned_abs());
        }
        stats.newest = stats.newest.max(Some(newest));
    }
    Ok(stats)
}
