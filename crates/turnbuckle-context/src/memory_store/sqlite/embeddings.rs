//! Embeddings of items.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::{
    embedding,
    memory_store::{EmbeddingCoverage, ItemNumber, MissingEmbedding, embedding_text},
};

/// Returns items without an embedding of a model, after an item and ordered by number.
pub(crate) fn missing(
    db: &Connection,
    model: &str,
    after: Option<ItemNumber>,
    limit: usize,
) -> rusqlite::Result<Vec<MissingEmbedding>> {
    let select = "SELECT i.row, i.title, i.detail, i.body FROM item i \
                  WHERE i.row > ?2 AND NOT EXISTS \
                  (SELECT 1 FROM vector v WHERE v.of = 'item' AND v.row = i.row AND v.model = ?1) \
                  ORDER BY i.row LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = db.prepare_cached(select)?;
    let after = after.map_or(0, ItemNumber::get);
    select
        .query_map(params![model, after, limit], missing_from_row)?
        .collect()
}

/// Stores embeddings and returns how many. Skips items that changed or were deleted since they were read.
pub(crate) fn save(
    db: &Connection,
    model: &str,
    embeddings: &[(MissingEmbedding, Vec<f32>)],
) -> rusqlite::Result<usize> {
    let current = "SELECT row, title, detail, body FROM item WHERE row = ?1";
    let mut current = db.prepare_cached(current)?;
    let insert = "INSERT OR REPLACE INTO vector (of, row, model, data) VALUES ('item', ?1, ?2, ?3)";
    let mut insert = db.prepare_cached(insert)?;
    let mut saved = 0;
    for (missing, vector) in embeddings {
        let row = missing.number.get();
        // Row ids are reused after deletion, so the text has to be compared.
        let now = current.query_row([row], missing_from_row).optional()?;
        if now.as_ref() == Some(missing) {
            insert.execute(params![row, model, embedding::to_bytes(vector)])?;
            saved += 1;
        }
    }
    Ok(saved)
}

/// Counts the items that have an embedding of a model, and all items.
pub(crate) fn coverage(db: &Connection, model: &str) -> rusqlite::Result<EmbeddingCoverage> {
    let select = "SELECT count(*), count(v.row) FROM item i \
                  LEFT JOIN vector v ON v.of = 'item' AND v.row = i.row AND v.model = ?1";
    db.query_row(select, [model], |row| {
        Ok(EmbeddingCoverage {
            total: row.get::<_, i64>(0)?.unsigned_abs(),
            created: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })
}

fn missing_from_row(row: &Row<'_>) -> rusqlite::Result<MissingEmbedding> {
    let part = |column: usize| -> rusqlite::Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let parts = [part(1)?, part(2)?, part(3)?];
    Ok(MissingEmbedding {
        number: ItemNumber::new(row.get(0)?),
        text: embedding_text(parts),
    })
}
