//! Candidate chunks by words.

use std::collections::HashMap;

use rusqlite::{Row, Transaction, params_from_iter, types::Value};

use super::{EmbeddingQuery, filter::SqlFilter, query_intent::QueryIntent, rank::ChunkCandidate};
use crate::embedding::nearest;

/// Maximum number of chunks that are ranked. More do not change the order of the first files.
const MAX_CANDIDATES: i64 = 400;
/// If fewer candidates of the database-wide search belong to the tree, only the tree is searched.
const MIN_DATABASE_CANDIDATES: usize = 100;
/// Weight of a synonym relative to a word of the query.
const SYNONYM_WEIGHT: f64 = 0.3;
/// bm25 with the weights of body, identifier parts, path and definitions.
const BM25: &str = "bm25(chunk_fts, 1.0, 1.0, 3.0, 3.0)";

const COLUMNS: &str = "c.id, f.id, f.path, f.language, c.defs, -score";

/// Returns the chunks that contain words of the query or, with less weight, synonyms of them.
pub(super) fn lexical_candidates(
    db: &Transaction<'_>,
    intent: &QueryIntent,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<ChunkCandidate>> {
    let mut found = by_query(db, intent.fts.as_deref(), filter)?;
    let related = by_query(db, intent.synonym_fts.as_deref(), filter)?;
    let positions = found
        .iter()
        .zip(0..)
        .map(|(one, position)| (one.chunk, position));
    let positions: HashMap<i64, usize> = positions.collect();
    for mut candidate in related {
        candidate.score *= SYNONYM_WEIGHT;
        match positions.get(&candidate.chunk) {
            Some(position) => found[*position].score += candidate.score,
            None => found.push(candidate),
        }
    }
    Ok(found)
}

/// Returns the best chunks for one FTS5 query.
fn by_query(
    db: &Transaction<'_>,
    query: Option<&str>,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<ChunkCandidate>> {
    let Some(query) = query else {
        return Ok(Vec::new());
    };
    let (match_count, best) = best_in_database(db, query, filter)?;
    if best.len() < MIN_DATABASE_CANDIDATES && match_count == MAX_CANDIDATES {
        return best_in_tree(db, query, filter);
    }
    Ok(best)
}

/// Searches the whole table and then filters by tree. FTS5 alone is fastest, and this usually yields enough candidates.
fn best_in_database(
    db: &Transaction<'_>,
    query: &str,
    filter: &SqlFilter,
) -> rusqlite::Result<(i64, Vec<ChunkCandidate>)> {
    let select = format!(
        "WITH best AS MATERIALIZED (
            SELECT rowid AS id, {BM25} AS score FROM chunk_fts
            WHERE chunk_fts MATCH ?1 ORDER BY score LIMIT ?2
        )
        SELECT {COLUMNS}, (SELECT count(*) FROM best)
        FROM best CROSS JOIN chunk c ON c.id = best.id CROSS JOIN file f ON f.id = c.file
        WHERE {} ORDER BY score, c.id",
        filter.condition
    );
    let mut statement = db.prepare_cached(&select)?;
    let mut rows = statement.query(params_from_iter(parameters(query, filter)))?;
    // Without a row of this tree the count is unknown; assume the maximum, so that the tree is searched.
    let mut match_count = MAX_CANDIDATES;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match_count = row.get(6)?;
        found.push(candidate_from_row(row)?);
    }
    Ok((match_count, found))
}

fn best_in_tree(
    db: &Transaction<'_>,
    query: &str,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<ChunkCandidate>> {
    // CROSS JOIN fixes the join order: running FTS5 once per chunk would be far too slow.
    let select = format!(
        "SELECT {COLUMNS} FROM (
            SELECT c.id AS chunk, {BM25} AS score
            FROM chunk_fts CROSS JOIN chunk c ON c.id = chunk_fts.rowid
            CROSS JOIN file f ON f.id = c.file
            WHERE chunk_fts MATCH ?1 AND {} ORDER BY score LIMIT ?2
        ) CROSS JOIN chunk c ON c.id = chunk CROSS JOIN file f ON f.id = c.file
        ORDER BY score, c.id",
        filter.condition
    );
    let mut statement = db.prepare_cached(&select)?;
    let rows = statement.query_map(
        params_from_iter(parameters(query, filter)),
        candidate_from_row,
    )?;
    rows.collect()
}

fn parameters<'a>(query: &str, filter: &'a SqlFilter) -> impl Iterator<Item = Value> + use<'a> {
    let fixed = [Value::from(query.to_owned()), Value::from(MAX_CANDIDATES)];
    fixed.into_iter().chain(filter.values.iter().cloned())
}

fn candidate_from_row(row: &Row<'_>) -> rusqlite::Result<ChunkCandidate> {
    Ok(ChunkCandidate {
        chunk: row.get(0)?,
        file: row.get(1)?,
        path: row.get(2)?,
        language: row.get(3)?,
        defs: row.get(4)?,
        score: row.get(5)?,
    })
}

/// Maximum number of chunks that are ranked.
const MAX_VECTOR_CANDIDATES: usize = 200;

/// Returns the nearest chunks, nearest first.
pub(super) fn vector_candidates(
    db: &Transaction<'_>,
    dense: &EmbeddingQuery,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<ChunkCandidate>> {
    let select = format!(
        "SELECT c.id, v.data FROM file f JOIN chunk c ON c.file = f.id
        JOIN vector v ON v.of = 'chunk' AND v.row = c.id AND v.model = ?1
        WHERE ?2 AND {}",
        filter.condition
    );
    let fixed = [Value::from(dense.model.clone()), Value::from(1)];
    let values = fixed.into_iter().chain(filter.values.iter().cloned());
    let mut statement = db.prepare_cached(&select)?;
    let rows = statement.query(params_from_iter(values))?;
    let near = nearest(rows, &dense.vector, MAX_VECTOR_CANDIDATES)?
        .rows
        .into_iter();
    near.map(|(chunk, cosine)| read_candidate(db, chunk, cosine))
        .collect()
}

fn read_candidate(
    db: &Transaction<'_>,
    chunk: i64,
    score: f64,
) -> rusqlite::Result<ChunkCandidate> {
    let select = "SELECT f.id, f.path, f.language, c.defs
                  FROM chunk c JOIN file f ON f.id = c.file WHERE c.id = ?1";
    db.prepare_cached(select)?.query_row([chunk], |row| {
        Ok(ChunkCandidate {
            chunk,
            file: row.get(0)?,
            path: row.get(1)?,
            language: row.get(2)?,
            defs: row.get(3)?,
            score,
        })
    })
}
