//! Items as table rows. The row id of an item is its number.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use crate::{
    ContextError, Database,
    memory::{ItemKind, MemoryItem, PreparedItem},
    memory_store::{ItemNumber, ItemSelection, ListPosition},
};

/// The columns that [`item_from_row`] expects, in its order.
pub(crate) const COLUMNS: &str = "row, id, kind, branch, title, body, detail, tags, meta, \
                                  confidence, usage, redacted, created, updated";

/// Returns the range of row ids of a kind.
///
/// Each kind has its own range, in the order of saving, so that FTS5 can find the newest rows of a kind without joining
/// another table.
pub(crate) fn row_range(kind: ItemKind) -> RangeInclusive<i64> {
    let begin = match kind {
        ItemKind::Checkpoint => 0,
        ItemKind::Remediation => 1 << 40,
        ItemKind::Skill => 2 << 40,
    };
    begin + 1..=begin + (1 << 40) - 1
}

/// Inserts an item or merges it with its duplicate. Returns whether it is new.
pub(crate) fn store(
    db: &Connection,
    prepared: PreparedItem,
) -> rusqlite::Result<(MemoryItem, bool)> {
    match find_by_hash(db, prepared.item.kind, &prepared.hash)? {
        None => Ok((insert(db, prepared)?, true)),
        Some(first) => {
            let merged = prepared.merge_into(first);
            update(db, &merged)?;
            Ok((merged.item, false))
        }
    }
}

/// Inserts an item with the next number of its kind.
fn insert(db: &Connection, prepared: PreparedItem) -> rusqlite::Result<MemoryItem> {
    let PreparedItem {
        mut item,
        words,
        hash,
    } = prepared;
    let range = row_range(item.kind);
    let next = "SELECT coalesce(max(row), ?1 - 1) + 1 FROM item WHERE row BETWEEN ?1 AND ?2";
    let row: i64 = db
        .prepare_cached(next)?
        .query_row([range.start(), range.end()], |row| row.get(0))?;
    item.number = ItemNumber::new(row);
    let insert = "INSERT INTO item (row, id, kind, branch, title, body, detail, tags, meta, \
                  confidence, usage, redacted, created, updated, words, hash) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    db.prepare_cached(insert)?.execute(params![
        row,
        item.id,
        item.kind.as_str(),
        item.branch,
        item.title,
        item.body,
        item.detail,
        tags(&item),
        meta(&item),
        item.confidence,
        item.usage,
        item.redacted,
        item.created,
        item.updated,
        words,
        hash,
    ])?;
    Ok(item)
}

/// Updates the row of an item. Id, kind and creation time do not change.
fn update(db: &Connection, prepared: &PreparedItem) -> rusqlite::Result<()> {
    let PreparedItem { item, words, hash } = prepared;
    let update = "UPDATE item SET branch = ?2, title = ?3, body = ?4, detail = ?5, tags = ?6, \
                  meta = ?7, confidence = ?8, redacted = ?9, updated = ?10, words = ?11, hash = ?12 \
                  WHERE row = ?1";
    db.prepare_cached(update)?.execute(params![
        item.number.get(),
        item.branch,
        item.title,
        item.body,
        item.detail,
        tags(item),
        meta(item),
        item.confidence,
        item.redacted,
        item.updated,
        words,
        hash,
    ])?;
    Ok(())
}

/// Returns the item of a kind with this hash.
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

/// Returns the item with this id.
pub(crate) fn find(db: &Connection, id: &str) -> rusqlite::Result<Option<MemoryItem>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM item WHERE id = ?1"))?
        .query_row([id], item_from_row)
        .optional()
}

/// Returns the selected items, in the order of the selection.
pub(crate) fn select(
    db: &Connection,
    selection: &ItemSelection<'_>,
) -> rusqlite::Result<Vec<MemoryItem>> {
    let mut on_branch = db.prepare_cached("SELECT 1 FROM item WHERE row = ?1 AND branch = ?2")?;
    let select = format!("SELECT {COLUMNS} FROM item WHERE row = ?1");
    let mut select = db.prepare_cached(&select)?;
    let mut found = Vec::new();
    for number in selection.numbers {
        if found.len() == selection.limit {
            break;
        }
        if let Some(branch) = selection.branch
            && !on_branch.exists(params![number.get(), branch])?
        {
            continue;
        }
        found.extend(select.query_row([number.get()], item_from_row).optional()?);
    }
    Ok(found)
}

/// Returns the newest items of a kind after a position.
pub(crate) fn list(
    db: &Connection,
    kind: ItemKind,
    after: Option<ListPosition>,
    limit: usize,
) -> rusqlite::Result<Vec<MemoryItem>> {
    let (created, row) = after.map_or((i64::MAX, i64::MAX), |after| {
        (after.created, after.number.get())
    });
    let select = format!(
        "SELECT {COLUMNS} FROM item WHERE kind = ?1 AND (created, row) < (?2, ?3) \
         ORDER BY created DESC, row DESC LIMIT ?4"
    );
    let mut select = db.prepare_cached(&select)?;
    let parameters = params![kind.as_str(), created, row, count(limit)];
    select.query_map(parameters, item_from_row)?.collect()
}

/// Returns ids with a prefix and their creation times, newest first.
pub(crate) fn ids(
    db: &Connection,
    kind: ItemKind,
    prefix: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, String)>> {
    let select = "SELECT created, id FROM item WHERE kind = ?1 AND substr(id, 1, length(?2)) = ?2 \
                  ORDER BY created DESC, row DESC LIMIT ?3";
    let mut select = db.prepare_cached(select)?;
    let parameters = params![kind.as_str(), prefix, count(limit)];
    let ids = select.query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    ids.collect()
}

/// Returns titles, newest first.
pub(crate) fn titles(
    db: &Connection,
    kind: ItemKind,
    limit: usize,
) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT title FROM item WHERE kind = ?1 ORDER BY created DESC, row DESC LIMIT ?2";
    let mut select = db.prepare_cached(select)?;
    let titles = select.query_map(params![kind.as_str(), count(limit)], |row| row.get(0))?;
    titles.collect()
}

/// Increments the usage count of items. Unknown ids are ignored.
pub(crate) fn count_use(db: &Connection, ids: &[&str]) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached("UPDATE item SET usage = usage + 1 WHERE id = ?1")?;
    for id in ids {
        update.execute([id])?;
    }
    Ok(())
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts a row with [`COLUMNS`] to an item.
pub(crate) fn item_from_row(row: &Row<'_>) -> rusqlite::Result<MemoryItem> {
    let kind: String = row.get(2)?;
    let tags: String = row.get(7)?;
    let meta: String = row.get(8)?;
    Ok(MemoryItem {
        number: ItemNumber::new(row.get(0)?),
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

/// Returns the tags of an item as they are stored and searched.
pub(crate) fn tags(item: &MemoryItem) -> String {
    serde_json::to_string(&item.tags).expect("strings can be written as JSON")
}

/// Returns the metadata of an item as they are stored.
pub(crate) fn meta(item: &MemoryItem) -> String {
    serde_json::to_string(&item.meta).expect("JSON can be written as JSON")
}

fn invalid_column(column: usize, name: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Text)
}

/// Maximum duration of one delete transaction, because other writers wait for it.
const MAX_TRANSACTION_TIME: Duration = Duration::from_millis(50);

/// Up to this many items are deleted with FTS5's `secure-delete`, which takes milliseconds per item. For more, the setting is
/// switched off and the search index is rewritten afterwards.
const MAX_SECURE_DELETES: usize = 8;
const SECURE_DELETE_OFF: &str = "INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 0)";
/// Flushes pending entries before the setting changes, because it applies when entries are written.
const SECURE_DELETE_ON: &str = "INSERT INTO item_fts (item_fts) VALUES ('flush');
                         INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 1);";

/// Deletes the items that match a condition in small transactions, and returns how many. Items saved in between are kept.
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
    // Check the condition again: an item may have been saved again since.
    let delete = format!("DELETE FROM item WHERE id = :id AND ({condition})");
    let mut deleted = 0;
    let are_few = ids.len() <= MAX_SECURE_DELETES;
    while !ids.is_empty() {
        deleted += database.write(|db| {
            let started = Instant::now();
            if !are_few {
                db.execute_batch(SECURE_DELETE_OFF)?;
            }
            let mut delete = db.prepare_cached(&delete)?;
            let mut count = 0;
            while let Some(id) = ids.pop() {
                let mut parameters = parameters.to_vec();
                parameters.push((":id", &id));
                count += delete.execute(parameters.as_slice())?;
                if started.elapsed() > MAX_TRANSACTION_TIME {
                    break;
                }
            }
            if !are_few {
                db.execute_batch(SECURE_DELETE_ON)?;
            }
            Ok(count as u64)
        })?;
        database.yield_lock();
    }
    if !are_few {
        database.rebuild_fts("item_fts")?;
    }
    Ok(deleted)
}
