//! Items as table rows.

use tokio_postgres::{Row, Transaction};

use super::{
    error::AttemptError,
    params,
    partitions::{self, PartitionId, ScopeKey, kind_number},
    text,
    tokens::ItemWords,
};
use crate::{
    memory::{ItemKind, MemoryItem, PreparedItem},
    memory_store::{
        ItemFilter, ItemNumber, ListPosition, MemoryStoreError, Partition,
        sqlite::items::{meta, row_range, tags},
    },
};

/// The columns that [`item_from_row`] expects, in its order, of the table `i`.
pub(super) const COLUMNS: &str = "i.number, i.id, i.kind, i.branch, i.title, i.body, i.detail, i.tags, \
                                  i.meta, i.confidence, i.usage, i.redacted, i.created, i.updated";

/// Inserts an item or merges it with its duplicate, in a locked partition. Returns whether it is new, and the change of the size.
pub(super) async fn store(
    tx: &Transaction<'_>,
    place: PartitionId,
    prepared: PreparedItem,
) -> Result<(MemoryItem, bool, i64), AttemptError> {
    let hash = prepared.hash().to_owned();
    match find_by_hash(tx, place, prepared.item.kind, &hash).await? {
        None => {
            let (item, bytes) = insert(tx, place, prepared).await?;
            Ok((item, true, bytes))
        }
        Some(first) => {
            let merged = prepared.merge_into(first);
            let bytes = update(tx, place, &merged).await?;
            Ok((merged.item, false, bytes))
        }
    }
}

/// Inserts an item with the next number of its kind.
async fn insert(
    tx: &Transaction<'_>,
    place: PartitionId,
    mut prepared: PreparedItem,
) -> Result<(MemoryItem, i64), AttemptError> {
    let range = row_range(prepared.item.kind);
    let next = "SELECT coalesce(max(number), $2 - 1) + 1 FROM turnbuckle.item \
                WHERE partition = $1 AND number BETWEEN $2 AND $3";
    let parameters = params![place.0 => INT8, *range.start() => INT8, *range.end() => INT8];
    let next = tx.query_typed_one(next, parameters).await?.try_get(0)?;
    prepared.item.number = ItemNumber::new(next);
    let bytes = size(&prepared);
    let insert = "INSERT INTO turnbuckle.item (partition, number, id, kind, branch, title, body, \
                  detail, tags, meta, confidence, usage, redacted, hash, bytes, created, updated) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let PreparedItem { item, hash, .. } = &prepared;
    let (tags, meta) = (encoded(&tags(item)), encoded(&meta(item)));
    let parameters = params![
        place.0 => INT8,
        next => INT8,
        item.id => TEXT,
        kind_number(item.kind) => INT2,
        text::encode(&item.branch) => TEXT,
        text::encode(&item.title) => TEXT,
        text::encode(&item.body) => TEXT,
        text::encode(&item.detail) => TEXT,
        tags => TEXT,
        meta => TEXT,
        item.confidence => FLOAT8,
        i64::from(item.usage) => INT8,
        i64::from(item.redacted) => INT8,
        hash => TEXT,
        bytes => INT8,
        item.created => INT8,
        item.updated => INT8,
    ];
    tx.execute_typed(insert, parameters).await?;
    save_words(tx, place, &prepared).await?;
    Ok((prepared.item, bytes))
}

/// Updates the row of an item. Id, kind and time of creation do not change. Returns the change of the size.
async fn update(
    tx: &Transaction<'_>,
    place: PartitionId,
    prepared: &PreparedItem,
) -> Result<i64, AttemptError> {
    let PreparedItem { item, hash, .. } = prepared;
    let (bytes, number) = (size(prepared), item.number.get());
    let (tags, meta) = (encoded(&tags(item)), encoded(&meta(item)));
    let update = "UPDATE turnbuckle.item i SET branch = $3, title = $4, body = $5, detail = $6, \
                  tags = $7, meta = $8, confidence = $9, redacted = $10, updated = $11, hash = $12, \
                  bytes = $13 FROM turnbuckle.item old WHERE i.partition = $1 AND i.number = $2 \
                  AND old.partition = $1 AND old.number = $2 RETURNING old.bytes";
    let parameters = params![
        place.0 => INT8,
        number => INT8,
        text::encode(&item.branch) => TEXT,
        text::encode(&item.title) => TEXT,
        text::encode(&item.body) => TEXT,
        text::encode(&item.detail) => TEXT,
        tags => TEXT,
        meta => TEXT,
        item.confidence => FLOAT8,
        i64::from(item.redacted) => INT8,
        item.updated => INT8,
        hash => TEXT,
        bytes => INT8,
    ];
    let before: i64 = tx.query_typed_one(update, parameters).await?.try_get(0)?;
    save_words(tx, place, prepared).await?;
    let delete = "WITH gone AS (DELETE FROM turnbuckle.embedding \
                  WHERE partition = $1 AND number = $2 RETURNING octet_length(data) AS bytes) \
                  SELECT coalesce(sum(bytes), 0)::bigint FROM gone";
    let parameters = params![place.0 => INT8, number => INT8];
    let embeddings: i64 = tx.query_typed_one(delete, parameters).await?.try_get(0)?;
    Ok(bytes - before - embeddings)
}

fn encoded(json: &str) -> String {
    text::encode(json).into_owned()
}

async fn save_words(
    tx: &Transaction<'_>,
    place: PartitionId,
    prepared: &PreparedItem,
) -> Result<(), AttemptError> {
    let ItemWords { vector, phrases } = ItemWords::new(&place.key(prepared.item.kind), prepared);
    let upsert = "INSERT INTO turnbuckle.item_words (partition, number, words, phrases) \
                  VALUES ($1, $2, $3::text::tsvector, $4) ON CONFLICT (partition, number) \
                  DO UPDATE SET words = excluded.words, phrases = excluded.phrases";
    let parameters = params![
        place.0 => INT8,
        prepared.item.number.get() => INT8,
        vector => TEXT,
        phrases => TEXT,
    ];
    tx.execute_typed(upsert, parameters).await?;
    Ok(())
}

/// Returns the size of an item, for the quota.
fn size(prepared: &PreparedItem) -> i64 {
    let PreparedItem { item, words, hash } = prepared;
    let texts = [
        &*item.title,
        &item.body,
        &item.detail,
        &item.branch,
        &tags(item),
        &meta(item),
        words,
        hash,
    ];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    i64::try_from(texts).unwrap_or(i64::MAX).saturating_add(100)
}

/// Returns the item of a kind with this hash.
pub(super) async fn find_by_hash(
    tx: &Transaction<'_>,
    place: PartitionId,
    kind: ItemKind,
    hash: &str,
) -> Result<Option<MemoryItem>, AttemptError> {
    let select = format!(
        "SELECT {COLUMNS} FROM turnbuckle.item i WHERE partition = $1 AND kind = $2 AND hash = $3"
    );
    let parameters = params![
        place.0 => INT8,
        kind_number(kind) => INT2,
        text::encode(hash) => TEXT,
    ];
    let row = tx.query_typed_opt(&select, parameters).await?;
    row.as_ref().map(item_from_row).transpose()
}

/// Returns the item with this id and its partition.
pub(super) async fn find(
    tx: &Transaction<'_>,
    scope: &ScopeKey,
    id: &str,
) -> Result<Option<(Partition, MemoryItem)>, AttemptError> {
    let select = format!(
        "SELECT {COLUMNS}, p.project FROM turnbuckle.partition p \
         JOIN turnbuckle.item i ON i.partition = p.id \
         WHERE p.owner = $1 AND ($2::text IS NULL OR p.project = $2) AND i.id = $3 \
         ORDER BY p.project COLLATE \"C\" LIMIT 1"
    );
    let parameters = params![
        scope.owner.id() => TEXT,
        scope.project => TEXT,
        text::encode(id) => TEXT,
    ];
    let Some(row) = tx.query_typed_opt(&select, parameters).await? else {
        return Ok(None);
    };
    Ok(Some((
        scope.partition(row.try_get(14)?),
        item_from_row(&row)?,
    )))
}

/// Returns the newest items of a kind after a position.
pub(super) async fn list(
    tx: &Transaction<'_>,
    partition: &Partition,
    kind: ItemKind,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<Vec<MemoryItem>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let (created, number) = after.map_or((i64::MAX, i64::MAX), |after| {
        (after.created, after.number.get())
    });
    let select = format!(
        "SELECT {COLUMNS} FROM turnbuckle.item i WHERE partition = $1 AND kind = $2 \
         AND (created, number) < ($3, $4) ORDER BY created DESC, number DESC LIMIT $5"
    );
    let parameters = params![
        place.0 => INT8,
        kind_number(kind) => INT2,
        created => INT8,
        number => INT8,
        count(limit) => INT8,
    ];
    let rows = tx.query_typed(&select, parameters).await?;
    rows.iter().map(item_from_row).collect()
}

/// Returns ids with a prefix and their times of creation, newest first in each partition.
pub(super) async fn ids(
    tx: &Transaction<'_>,
    scope: &ScopeKey,
    kind: ItemKind,
    prefix: &str,
    limit: usize,
) -> Result<Vec<(i64, String)>, AttemptError> {
    let select = "SELECT i.created, i.id FROM turnbuckle.partition p CROSS JOIN LATERAL \
                  (SELECT created, number, id FROM turnbuckle.item \
                  WHERE partition = p.id AND kind = $3 AND starts_with(id, $4) \
                  ORDER BY created DESC, number DESC LIMIT $5) i \
                  WHERE p.owner = $1 AND ($2::text IS NULL OR p.project = $2) \
                  ORDER BY p.project COLLATE \"C\", i.created DESC, i.number DESC";
    let parameters = params![
        scope.owner.id() => TEXT,
        scope.project => TEXT,
        kind_number(kind) => INT2,
        text::encode(prefix) => TEXT,
        count(limit) => INT8,
    ];
    let rows = tx.query_typed(select, parameters).await?;
    let id = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(id).collect()
}

/// Returns the titles of a kind, newest first.
pub(super) async fn titles(
    tx: &Transaction<'_>,
    partition: &Partition,
    kind: ItemKind,
    limit: usize,
) -> Result<Vec<String>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let select = "SELECT title FROM turnbuckle.item WHERE partition = $1 AND kind = $2 \
                  ORDER BY created DESC, number DESC LIMIT $3";
    let parameters = params![
        place.0 => INT8,
        kind_number(kind) => INT2,
        count(limit) => INT8,
    ];
    let rows = tx.query_typed(select, parameters).await?;
    let title = |row: &Row| Ok(text::decode(row.try_get(0)?));
    rows.iter().map(title).collect()
}

/// Returns the items with these numbers, in their order.
pub(super) async fn select(
    tx: &Transaction<'_>,
    partition: &Partition,
    numbers: &[i64],
    branch: Option<&str>,
    limit: usize,
) -> Result<Vec<MemoryItem>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let select = format!(
        "SELECT {COLUMNS} FROM unnest($2::bigint[]) WITH ORDINALITY AS wanted (number, at) \
         JOIN turnbuckle.item i ON i.partition = $1 AND i.number = wanted.number \
         WHERE $3::text IS NULL OR i.branch = $3 ORDER BY wanted.at LIMIT $4"
    );
    let parameters = params![
        place.0 => INT8,
        numbers => INT8_ARRAY,
        branch.map(text::encode) => TEXT,
        count(limit) => INT8,
    ];
    let rows = tx.query_typed(&select, parameters).await?;
    rows.iter().map(item_from_row).collect()
}

/// Increments the use counts of items. Unknown ids are ignored.
pub(super) async fn count_use(
    tx: &Transaction<'_>,
    partition: &Partition,
    ids: &[String],
) -> Result<(), AttemptError> {
    if ids.is_empty() {
        return Ok(());
    }
    // Each transaction locks the partition before the items, so that none waits for another in a circle.
    let Some(place) = partitions::lock_existing(tx, partition).await? else {
        return Ok(());
    };
    let update =
        "UPDATE turnbuckle.item SET usage = usage + 1 WHERE partition = $1 AND id = ANY ($2)";
    tx.execute_typed(update, params![place.0 => INT8, ids => TEXT_ARRAY])
        .await?;
    Ok(())
}

/// Removes items from a locked partition and returns how many.
pub(super) async fn remove(
    tx: &Transaction<'_>,
    place: PartitionId,
    filter: &ItemFilter,
) -> Result<u64, AttemptError> {
    match filter {
        ItemFilter::Id(id) => remove_where(tx, place, "id = $2", Some(id), 0).await,
        ItemFilter::Before { kind, time } => {
            let condition = match kind {
                Some(kind) => format!(
                    "$2::text IS NULL AND updated < $3 AND kind = {}",
                    kind_number(*kind)
                ),
                None => "$2::text IS NULL AND updated < $3".to_owned(),
            };
            remove_where(tx, place, &condition, None, *time).await
        }
    }
}

/// Removes the items of a branch.
pub(super) async fn remove_branch(
    tx: &Transaction<'_>,
    place: PartitionId,
    branch: &str,
) -> Result<u64, AttemptError> {
    remove_where(tx, place, "branch = $2", Some(branch), 0).await
}

/// Removes the items that match a condition on a text and a time.
async fn remove_where(
    tx: &Transaction<'_>,
    place: PartitionId,
    condition: &str,
    text: Option<&str>,
    time: i64,
) -> Result<u64, AttemptError> {
    let delete = format!(
        "WITH embeddings AS (SELECT coalesce(sum(octet_length(data)), 0) AS bytes \
         FROM turnbuckle.embedding e JOIN turnbuckle.item i USING (partition, number) \
         WHERE partition = $1 AND $3::bigint IS NOT NULL AND {condition}), \
         gone AS (DELETE FROM turnbuckle.item WHERE partition = $1 AND {condition} RETURNING bytes) \
         SELECT count(*), (coalesce(sum(bytes), 0) + (SELECT bytes FROM embeddings))::bigint FROM gone"
    );
    let text = text.map(text::encode);
    let parameters = params![place.0 => INT8, text => TEXT, time => INT8];
    let row = tx.query_typed_one(&delete, parameters).await?;
    let (count, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if count > 0 {
        partitions::change(tx, place, -bytes).await?;
    }
    Ok(count.unsigned_abs())
}

/// Converts a row with [`COLUMNS`] to an item.
pub(super) fn item_from_row(row: &Row) -> Result<MemoryItem, AttemptError> {
    let text = |column: usize| row.try_get(column).map(text::decode);
    let kind: i16 = row.try_get(2)?;
    let mut kinds = ItemKind::ALL.into_iter();
    let kind = kinds.find(|known| kind_number(*known) == kind);
    let count = |column: usize| -> Result<u32, tokio_postgres::Error> {
        Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or_default())
    };
    Ok(MemoryItem {
        number: ItemNumber::new(row.try_get(0)?),
        id: text(1)?,
        kind: kind.ok_or_else(|| damaged("the kind of an item"))?,
        branch: text(3)?,
        title: text(4)?,
        body: text(5)?,
        detail: text(6)?,
        tags: serde_json::from_str(&text(7)?).map_err(|_| damaged("the tags of an item"))?,
        meta: serde_json::from_str(&text(8)?).map_err(|_| damaged("the metadata of an item"))?,
        confidence: row.try_get(9)?,
        usage: count(10)?,
        redacted: count(11)?,
        created: row.try_get(12)?,
        updated: row.try_get(13)?,
    })
}

fn damaged(what: &str) -> AttemptError {
    MemoryStoreError::Damaged(format!("{what} cannot be read").into()).into()
}

pub(super) fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
