//! Embeddings of items.

use tokio_postgres::{Row, Transaction};

use super::{
    error::AttemptError,
    items::count,
    params,
    partitions::{self, PartitionId},
    text,
};
use crate::{
    code_search::EmbeddingQuery,
    embedding::{self, TopRows},
    memory::ItemKind,
    memory_store::{
        EmbeddingCoverage, ItemNumber, MissingEmbedding, Partition, embedding_text,
        sqlite::items::row_range,
    },
};

/// How many embeddings are read at once.
const PAGE: i64 = 2_000;

/// Returns the nearest items of a kind with their cosine similarity, nearest first.
pub(super) async fn nearest(
    tx: &Transaction<'_>,
    partition: &Partition,
    kind: ItemKind,
    query: &EmbeddingQuery,
    limit: usize,
) -> Result<Vec<(ItemNumber, f64)>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let range = row_range(kind);
    let select = "SELECT number, data FROM turnbuckle.embedding WHERE partition = $1 \
                  AND number > $2 AND number <= $3 AND model = $4 ORDER BY number LIMIT $5";
    let mut best = TopRows::new(limit);
    let mut after = *range.start() - 1;
    loop {
        let parameters = params![
            place.0 => INT8,
            after => INT8,
            *range.end() => INT8,
            text::encode(&query.model) => TEXT,
            PAGE => INT8,
        ];
        let rows = tx.query_typed(select, parameters).await?;
        for row in &rows {
            after = row.try_get(0)?;
            if let Some(cosine) = embedding::cosine(&query.vector, row.try_get(1)?)
                && cosine > 0.0
            {
                best.push(after, cosine);
            }
        }
        if rows.len() < PAGE as usize {
            break;
        }
    }
    let numbered = |(row, similarity)| (ItemNumber::new(row), similarity);
    Ok(best.into_rows().into_iter().map(numbered).collect())
}

/// Returns items without an embedding of a model, after an item and ordered by number.
pub(super) async fn missing(
    tx: &Transaction<'_>,
    partition: &Partition,
    model: &str,
    after: Option<ItemNumber>,
    limit: usize,
) -> Result<Vec<MissingEmbedding>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let select = "SELECT i.number, i.title, i.detail, i.body FROM turnbuckle.item i \
                  WHERE i.partition = $1 AND i.number > $2 AND NOT EXISTS \
                  (SELECT 1 FROM turnbuckle.embedding e WHERE e.partition = $1 \
                  AND e.number = i.number AND e.model = $3) ORDER BY i.number LIMIT $4";
    let parameters = params![
        place.0 => INT8,
        after.map_or(0, ItemNumber::get) => INT8,
        text::encode(model) => TEXT,
        count(limit) => INT8,
    ];
    let rows = tx.query_typed(select, parameters).await?;
    rows.iter().map(missing_from_row).collect()
}

/// Stores embeddings and returns how many. Skips items that changed or were removed since they were read.
pub(super) async fn save(
    tx: &Transaction<'_>,
    place: PartitionId,
    model: &str,
    embeddings: &[(MissingEmbedding, Vec<f32>)],
) -> Result<usize, AttemptError> {
    let current = "SELECT number, title, detail, body FROM turnbuckle.item \
                   WHERE partition = $1 AND number = ANY ($2)";
    let numbers: Vec<i64> = embeddings.iter().map(|(one, _)| one.number.get()).collect();
    let parameters = params![place.0 => INT8, numbers => INT8_ARRAY];
    let rows = tx.query_typed(current, parameters).await?;
    let current: Result<Vec<_>, _> = rows.iter().map(missing_from_row).collect();
    let current = current?;
    let insert = "WITH old AS (SELECT coalesce(sum(octet_length(data)), 0) AS bytes \
                  FROM turnbuckle.embedding WHERE partition = $1 AND number = $2 AND model = $3), \
                  new AS (INSERT INTO turnbuckle.embedding (partition, number, model, data) \
                  VALUES ($1, $2, $3, $4) ON CONFLICT (partition, number, model) \
                  DO UPDATE SET data = excluded.data RETURNING octet_length(data) AS bytes) \
                  UPDATE turnbuckle.partition SET bytes = bytes \
                  + (SELECT bytes FROM new) - (SELECT bytes FROM old) WHERE id = $1";
    let mut saved = 0;
    for (missing, vector) in embeddings {
        if !current.contains(missing) {
            continue;
        }
        let parameters = params![
            place.0 => INT8,
            missing.number.get() => INT8,
            text::encode(model) => TEXT,
            embedding::to_bytes(vector) => BYTEA,
        ];
        tx.execute_typed(insert, parameters).await?;
        saved += 1;
    }
    Ok(saved)
}

/// Counts the items that have an embedding of a model, and all items.
pub(super) async fn coverage(
    tx: &Transaction<'_>,
    partition: &Partition,
    model: &str,
) -> Result<EmbeddingCoverage, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(EmbeddingCoverage::default());
    };
    let select = "SELECT count(*), count(e.number) FROM turnbuckle.item i \
                  LEFT JOIN turnbuckle.embedding e ON e.partition = i.partition \
                  AND e.number = i.number AND e.model = $2 WHERE i.partition = $1";
    let parameters = params![place.0 => INT8, text::encode(model) => TEXT];
    let row = tx.query_typed_one(select, parameters).await?;
    Ok(EmbeddingCoverage {
        total: row.try_get::<_, i64>(0)?.unsigned_abs(),
        created: row.try_get::<_, i64>(1)?.unsigned_abs(),
    })
}

fn missing_from_row(row: &Row) -> Result<MissingEmbedding, AttemptError> {
    let part = |column: usize| row.try_get(column).map(text::decode);
    let parts = [part(1)?, part(2)?, part(3)?];
    Ok(MissingEmbedding {
        number: ItemNumber::new(row.try_get(0)?),
        text: embedding_text([&parts[0], &parts[1], &parts[2]]),
    })
}
