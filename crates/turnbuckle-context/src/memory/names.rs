//! What things are called, without the things.

use rusqlite::params;

use super::ItemKind;
use crate::{ContextError, Database};

/// Ids that begin with a text and when they were saved, newest first.
pub(crate) fn ids_with_prefix(
    database: &Database,
    kind: ItemKind,
    begin: &str,
    limit: usize,
) -> Result<Vec<(i64, String)>, ContextError> {
    let select = "SELECT created, id FROM item WHERE kind = ?1 AND substr(id, 1, length(?2)) = ?2 \
                  ORDER BY created DESC, row DESC LIMIT ?3";
    database.read(|db| {
        let mut select = db.prepare_cached(select)?;
        let parameters = params![kind.as_str(), begin, count(limit)];
        let ids = select.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(ids.collect::<Result<_, _>>()?)
    })
}

/// Titles, newest first.
pub(crate) fn titles(
    database: &Database,
    kind: ItemKind,
    limit: usize,
) -> Result<Vec<String>, ContextError> {
    let select = "SELECT title FROM item WHERE kind = ?1 ORDER BY created DESC, row DESC LIMIT ?2";
    database.read(|db| {
        let mut select = db.prepare_cached(select)?;
        let titles = select.query_map(params![kind.as_str(), count(limit)], |row| row.get(0))?;
        Ok(titles.collect::<Result<_, _>>()?)
    })
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
