//! Items by branch, and collections that were created by name.

use tokio_postgres::Transaction;

use super::{
    error::AttemptError,
    items, params,
    partitions::{self, PartitionId},
    text,
};
use crate::memory_store::{Partition, StoredBranches};

/// Returns the branches of a partition.
pub(super) async fn read(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<StoredBranches, AttemptError> {
    let mut branches = StoredBranches::default();
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(branches);
    };
    let items = "SELECT branch, count(*) FROM turnbuckle.item WHERE partition = $1 GROUP BY branch";
    let collections = "SELECT label, vector_size FROM turnbuckle.collection WHERE partition = $1";
    for (select, pairs) in [
        (items, &mut branches.items),
        (collections, &mut branches.collections),
    ] {
        for row in tx.query_typed(select, params![place.0 => INT8]).await? {
            let number: i64 = row.try_get(1)?;
            pairs.insert(text::decode(row.try_get(0)?), number.unsigned_abs());
        }
    }
    let size =
        "SELECT octet_length(data) / 4 FROM turnbuckle.embedding WHERE partition = $1 LIMIT 1";
    if let Some(row) = tx.query_typed_opt(size, params![place.0 => INT8]).await? {
        branches.vector_size = u64::from(row.try_get::<_, i32>(0)?.unsigned_abs());
    }
    Ok(branches)
}

/// Creates a collection in a locked partition, or changes the size of its vectors.
pub(super) async fn create(
    tx: &Transaction<'_>,
    place: PartitionId,
    label: &str,
    vector_size: u64,
    replaces: bool,
) -> Result<(), AttemptError> {
    let insert = format!(
        "INSERT INTO turnbuckle.collection (partition, label, vector_size) VALUES ($1, $2, $3) \
         ON CONFLICT (partition, label) DO {}",
        if replaces {
            "UPDATE SET vector_size = excluded.vector_size"
        } else {
            "NOTHING"
        }
    );
    let parameters = params![
        place.0 => INT8,
        text::encode(label) => TEXT,
        vector_size.cast_signed() => INT8,
    ];
    tx.execute_typed(&insert, parameters).await?;
    Ok(())
}

/// Removes the items of a branch, then the collection if no branch with its label is left.
pub(super) async fn remove(
    tx: &Transaction<'_>,
    place: PartitionId,
    label: &str,
    branch: Option<&str>,
) -> Result<u64, AttemptError> {
    let items = match branch {
        Some(branch) => items::remove_branch(tx, place, branch).await?,
        None => 0,
    };
    let delete = "DELETE FROM turnbuckle.collection WHERE partition = $1 AND label = $2 \
                  AND NOT EXISTS (SELECT 1 FROM turnbuckle.item \
                  WHERE partition = $1 AND replace(branch, '/', '_') = $2)";
    let parameters = params![place.0 => INT8, text::encode(label) => TEXT];
    if tx.execute_typed(delete, parameters).await? > 0 {
        partitions::change(tx, place, 0).await?;
    }
    Ok(items)
}
