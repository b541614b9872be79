//! Candidates of a search, listed by FTS5 and by embeddings.

use rusqlite::{Connection, params};

use super::items::row_range;
use crate::{
    code_search::EmbeddingQuery,
    embedding,
    memory::ItemKind,
    memory_store::{Cooccurrence, ItemNumber, TermCandidates},
};

/// Lists the items that contain the terms.
pub(crate) fn candidates(
    db: &Connection,
    kind: ItemKind,
    terms: &[String],
) -> rusqlite::Result<TermCandidates> {
    let Some((oldest, newest)) = row_bounds(db, kind)? else {
        return Ok(TermCandidates::without_items(terms.len()));
    };
    let most = TermCandidates::max_listed(terms.len());
    let lists = terms
        .iter()
        .map(|term| matching(db, kind, &quote(term), most));
    let lists = lists.collect::<rusqlite::Result<_>>()?;
    let mut candidates = TermCandidates::from_lists(lists, most, oldest, newest);
    for set in candidates.cooccurrence_sets() {
        let all: Vec<String> = set.iter().map(|&term| quote(&terms[term])).collect();
        let most = TermCandidates::MAX_COOCCURRENCES;
        let numbers = matching(db, kind, &all.join(" AND "), most)?;
        candidates.cooccurrences.push(Cooccurrence {
            terms: set,
            numbers,
        });
    }
    Ok(candidates)
}

/// Returns the first and last row of a kind.
fn row_bounds(db: &Connection, kind: ItemKind) -> rusqlite::Result<Option<(i64, i64)>> {
    let range = row_range(kind);
    // Two subqueries read one page each; `min` and `max` in one SELECT would read all rows.
    let ends = "SELECT (SELECT min(row) FROM item WHERE row BETWEEN ?1 AND ?2), \
                (SELECT max(row) FROM item WHERE row BETWEEN ?1 AND ?2)";
    let ends: (Option<i64>, Option<i64>) = db
        .prepare_cached(ends)?
        .query_row([range.start(), range.end()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(ends.0.zip(ends.1))
}

/// Returns the newest matching items of a kind.
fn matching(
    db: &Connection,
    kind: ItemKind,
    query: &str,
    most: usize,
) -> rusqlite::Result<Vec<ItemNumber>> {
    let range = row_range(kind);
    let select = "SELECT rowid FROM item_fts WHERE item_fts MATCH ?1 \
                  AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";
    let mut select = db.prepare_cached(select)?;
    let parameters = params![query, range.start(), range.end(), most as i64];
    select
        .query_map(parameters, |row| row.get(0).map(ItemNumber::new))?
        .collect()
}

/// Quotes a term for FTS5. Terms consist of letters, digits and spaces.
fn quote(term: &str) -> String {
    format!("\"{term}\"")
}

/// Returns the nearest items of a kind with their cosine similarity, nearest first.
pub(crate) fn nearest(
    db: &Connection,
    kind: ItemKind,
    query: &EmbeddingQuery,
    most: usize,
) -> rusqlite::Result<Vec<(ItemNumber, f64)>> {
    let range = row_range(kind);
    let select = "SELECT row, data FROM vector \
                  WHERE of = 'item' AND row BETWEEN ?1 AND ?2 AND model = ?3";
    let mut select = db.prepare_cached(select)?;
    let rows = select.query(params![range.start(), range.end(), query.model])?;
    let nearest = embedding::nearest(rows, &query.vector, most)?.rows;
    let numbered = |(row, similarity)| (ItemNumber::new(row), similarity);
    Ok(nearest.into_iter().map(numbered).collect())
}
