//! Items as the tables have them.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::{ItemKind, MemoryItem};
use crate::{ContextError, Database, owner::hex};

/// The columns that [`item_from_row`] expects, in its order.
pub(crate) const COLUMNS: &str = "row, id, kind, branch, title, body, detail, tags, meta, \
                                  confidence, usage, redacted, created, updated";

/// The row numbers of a kind.
///
/// Each kind has its own range, in the order of saving: FTS5 can then be asked for the newest of one kind without a look
/// at any other table.
pub(crate) fn row_range(kind: ItemKind) -> RangeInclusive<i64> {
    let begin = match kind {
        ItemKind::Checkpoint => 0,
        ItemKind::Remediation => 1 << 40,
        ItemKind::Skill => 2 << 40,
    };
    begin + 1..=begin + (1 << 40) - 1
}

/// What is stored of an item beside what its reader sees.
pub(crate) struct HiddenColumns {
    /// The parts of identifiers, and what an error is known by.
    pub(crate) words: String,
    /// What makes it the same as another.
    pub(crate) hash: String,
}

/// Adds an item; its row is the next of its kind, whatever it says itself.
pub(crate) fn insert(
    db: &Connection,
    item: &mut MemoryItem,
    hidden: &HiddenColumns,
) -> rusqlite::Result<()> {
    let range = row_range(item.kind);
    let next = "SELECT coalesce(max(row), ?1 - 1) + 1 FROM item WHERE row BETWEEN ?1 AND ?2";
    item.row = db
        .prepare_cached(next)?
        .query_row([range.start(), range.end()], |row| row.get(0))?;
    let insert = "INSERT INTO item (row, id, kind, branch, title, body, detail, tags, meta, \
                  confidence, usage, redacted, created, updated, words, hash) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    db.prepare_cached(insert)?.execute(params![
        item.row,
        item.id,
        item.kind.as_str(),
        item.branch,
        item.title,
        item.body,
        item.detail,
        tags(item),
        meta(item),
        item.confidence,
        item.usage,
        item.redacted,
        item.created,
        item.updated,
        hidden.words,
        hidden.hash,
    ])?;
    Ok(())
}

/// Writes an item over the one of the same row. Its id, kind and time of creation stay.
pub(crate) fn update(
    db: &Connection,
    item: &MemoryItem,
    hidden: &HiddenColumns,
) -> rusqlite::Result<()> {
    let update = "UPDATE item SET branch = ?2, title = ?3, body = ?4, detail = ?5, tags = ?6, \
                  meta = ?7, confidence = ?8, redacted = ?9, updated = ?10, words = ?11, hash = ?12 \
                  WHERE row = ?1";
    db.prepare_cached(update)?.execute(params![
        item.row,
        item.branch,
        item.title,
        item.body,
        item.detail,
        tags(item),
        meta(item),
        item.confidence,
        item.redacted,
        item.updated,
        hidden.words,
        hidden.hash,
    ])?;
    Ok(())
}

/// Finds the item of a kind that has this hash.
pub(crate) fn find_by_hash(
    db: &Connection,
    kind: ItemKind,
    hash: &str,
) -> rusqlite::Result<Option<MemoryItem>> {
    db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM item WHERE kind = ?1 AND hash = ?2"
    ))?
    .query_row([kind.as_str(), hash], item_from_row)
    .optional()
}

/// Finds the item of a row.
pub(crate) fn find_by_row(db: &Connection, row: i64) -> rusqlite::Result<Option<MemoryItem>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM item WHERE row = ?1"))?
        .query_row([row], item_from_row)
        .optional()
}

/// Whether an item was saved on a branch.
pub(crate) fn is_on_branch(db: &Connection, row: i64, branch: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM item WHERE row = ?1 AND branch = ?2")?
        .exists(params![row, branch])
}

/// Makes an item of a row that has [`COLUMNS`].
pub(crate) fn item_from_row(row: &Row<'_>) -> rusqlite::Result<MemoryItem> {
    let kind: String = row.get(2)?;
    let tags: String = row.get(7)?;
    let meta: String = row.get(8)?;
    Ok(MemoryItem {
        row: row.get(0)?,
        id: row.get(1)?,
        kind: kind.parse().map_err(|_| invalid_column(2, "kind"))?,
        branch: row.get(3)?,
        title: row.get(4)?,
        body: row.get(5)?,
        detail: row.get(6)?,
        tags: serde_json::from_str(&tags).map_err(|_| invalid_column(7, "tags"))?,
        meta: serde_json::from_str(&meta).map_err(|_| invalid_column(8, "meta"))?,
        confidence: row.get(9)?,
        usage: row.get(10)?,
        redacted: row.get(11)?,
        created: row.get(12)?,
        updated: row.get(13)?,
    })
}

/// A new id: a prefix and sixteen random hexadecimal digits.
pub(crate) fn new_id(prefix: &str) -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("the system has random numbers");
    format!("{prefix}_{}", hex(&random))
}

fn tags(item: &MemoryItem) -> String {
    serde_json::to_string(&item.tags).expect("strings can be written as JSON")
}

fn meta(item: &MemoryItem) -> String {
    serde_json::to_string(&item.meta).expect("JSON can be written as JSON")
}

fn invalid_column(column: usize, name: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Text)
}

/// How long one transaction may take for deleting: others wait for it.
const MAX_TRANSACTION_TIME: Duration = Duration::from_millis(50);

/// Up to so many are taken out one by one.
const MAX_SECURE_DELETES: usize = 8;
const SECURE_DELETE_OFF: &str = "INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 0)";
/// What was noted is written before the setting changes: it holds for the writing.
const SECURE_DELETE_ON: &str = "INSERT INTO item_fts (item_fts) VALUES ('flush');
                         INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 1);";

/// Deletes the items that a condition holds for, and says how many. What others save meanwhile stays.
pub(crate) fn delete_where(
    database: &Database,
    condition: &str,
    parameters: &[(&str, &dyn ToSql)],
) -> Result<u64, ContextError> {
    let mut ids: Vec<String> = database.read(|db| {
        let mut select = db.prepare(&format!("SELECT id FROM item WHERE {condition}"))?;
        let ids = select.query_map(parameters, |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    })?;
    // One that was saved again since may not be meant any more.
    let delete = format!("DELETE FROM item WHERE id = :id AND ({condition})");
    let mut erased = 0;
    let are_few = ids.len() <= MAX_SECURE_DELETES;
    while !ids.is_empty() {
        erased += database.write(|db| {
            let begun = Instant::now();
            if !are_few {
                db.execute_batch(SECURE_DELETE_OFF)?;
            }
            let mut delete = db.prepare_cached(&delete)?;
            let mut gone = 0;
            while let Some(id) = ids.pop() {
                let mut parameters = parameters.to_vec();
                parameters.push((":id", &id));
                gone += delete.execute(parameters.as_slice())?;
                if begun.elapsed() > MAX_TRANSACTION_TIME {
                    break;
                }
            }
            if !are_few {
                db.execute_batch(SECURE_DELETE_ON)?;
            }
            Ok(gone as u64)
        })?;
        database.yield_lock();
    }
    if !are_few {
        database.rebuild_fts("item_fts")?;
    }
    Ok(erased)
}
