//! The chunks that fit a question by their words.

use std::collections::HashMap;

use rusqlite::{Row, Transaction, params_from_iter, types::Value};

use super::filter::Filter;
use super::question::Question;
use super::rank::Candidate;

/// Chunks that are ranked. More of them change nothing among the first files.
const MOST: i64 = 400;
/// With fewer left of the best of all trees, the chunks of this tree are looked through alone.
const ENOUGH: usize = 100;
/// What a word for the same thing is worth beside the word that was asked for.
const RELATED: f64 = 0.3;
/// The weights of body, parts of identifiers, path and definitions.
const RANK: &str = "bm25(chunk_fts, 1.0, 1.0, 3.0, 3.0)";

const COLUMNS: &str = "c.id, f.id, f.path, f.language, c.defs, -score";

/// The chunks that have words of the question, and a little those that have words for the same things.
pub(super) fn candidates(
    db: &Transaction<'_>,
    question: &Question,
    filter: &Filter,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut found = by_query(db, question.fts.as_deref(), filter)?;
    let related = by_query(db, question.related_fts.as_deref(), filter)?;
    let places = found.iter().zip(0..).map(|(one, place)| (one.chunk, place));
    let places: HashMap<i64, usize> = places.collect();
    for mut candidate in related {
        candidate.score *= RELATED;
        match places.get(&candidate.chunk) {
            Some(place) => found[*place].score += candidate.score,
            None => found.push(candidate),
        }
    }
    Ok(found)
}

/// The best chunks for one question.
fn by_query(
    db: &Transaction<'_>,
    query: Option<&str>,
    filter: &Filter,
) -> rusqlite::Result<Vec<Candidate>> {
    let Some(query) = query else {
        return Ok(Vec::new());
    };
    let (looked_at, best) = best_of_all(db, query, filter)?;
    if best.len() < ENOUGH && looked_at == MOST {
        return best_of_tree(db, query, filter);
    }
    Ok(best)
}

/// Takes the best of the whole table and then those of the tree: FTS5 alone is quickest, and mostly this suffices.
fn best_of_all(
    db: &Transaction<'_>,
    query: &str,
    filter: &Filter,
) -> rusqlite::Result<(i64, Vec<Candidate>)> {
    let select = format!(
        "WITH best AS MATERIALIZED (
            SELECT rowid AS id, {RANK} AS score FROM chunk_fts
            WHERE chunk_fts MATCH ?1 ORDER BY score LIMIT ?2
        )
        SELECT {COLUMNS}, (SELECT count(*) FROM best)
        FROM best CROSS JOIN chunk c ON c.id = best.id CROSS JOIN file f ON f.id = c.file
        WHERE {} ORDER BY score, c.id",
        filter.condition
    );
    let mut statement = db.prepare_cached(&select)?;
    let mut rows = statement.query(params_from_iter(values(query, filter)))?;
    // Without a row of this tree nobody counted: then look there.
    let mut looked_at = MOST;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        looked_at = row.get(6)?;
        found.push(candidate(row)?);
    }
    Ok((looked_at, found))
}

fn best_of_tree(
    db: &Transaction<'_>,
    query: &str,
    filter: &Filter,
) -> rusqlite::Result<Vec<Candidate>> {
    // The order of the joins is given: asking FTS5 anew for every chunk of a file would take for ever.
    let select = format!(
        "SELECT {COLUMNS} FROM (
            SELECT c.id AS chunk, {RANK} AS score
            FROM chunk_fts CROSS JOIN chunk c ON c.id = chunk_fts.rowid
            CROSS JOIN file f ON f.id = c.file
            WHERE chunk_fts MATCH ?1 AND {} ORDER BY score LIMIT ?2
        ) CROSS JOIN chunk c ON c.id = chunk CROSS JOIN file f ON f.id = c.file
        ORDER BY score, c.id",
        filter.condition
    );
    let mut statement = db.prepare_cached(&select)?;
    let rows = statement.query_map(params_from_iter(values(query, filter)), candidate)?;
    rows.collect()
}

fn values<'a>(query: &str, filter: &'a Filter) -> impl Iterator<Item = Value> + use<'a> {
    let question = [Value::from(query.to_owned()), Value::from(MOST)];
    question.into_iter().chain(filter.values.iter().cloned())
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        chunk: row.get(0)?,
        file: row.get(1)?,
        path: row.get(2)?,
        language: row.get(3)?,
        defs: row.get(4)?,
        score: row.get(5)?,
    })
}
