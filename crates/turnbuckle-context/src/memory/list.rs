//! Looking things up without a question: the newest, by id, by name.

use rusqlite::{OptionalExtension as _, params};

use super::{ItemKind, MemoryItem, cursor::ListCursor, save, stored};
use crate::{ContextError, Database};

/// A page has so many things at most.
const MAX_PAGE_ITEMS: usize = 1_000;

/// Some things, and how to get more.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemPage {
    /// Newest first.
    pub items: Vec<MemoryItem>,
    /// Where the next page begins, if there is more.
    pub next: Option<String>,
}

/// Lists the newest things of a kind, from where another page ended. What is saved meanwhile shifts nothing.
pub fn list(
    database: &Database,
    kind: ItemKind,
    limit: usize,
    after: Option<&str>,
) -> Result<ItemPage, ContextError> {
    let limit = limit.clamp(1, MAX_PAGE_ITEMS);
    let begin = ListCursor {
        created: i64::MAX,
        row: i64::MAX,
    };
    let after = after.map_or(Ok(begin), |text| ListCursor::parse(kind, text))?;
    let mut items: Vec<MemoryItem> = database.read(|db| {
        let select = format!(
            "SELECT {} FROM item WHERE kind = ?1 AND (created, row) < (?2, ?3) \
             ORDER BY created DESC, row DESC LIMIT ?4",
            stored::COLUMNS
        );
        let mut select = db.prepare_cached(&select)?;
        // One more tells whether there is more.
        let parameters = params![kind.as_str(), after.created, after.row, (limit + 1) as i64];
        let items = select.query_map(parameters, stored::item_from_row)?;
        Ok(items.collect::<Result<_, _>>()?)
    })?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| {
        let position = ListCursor {
            created: last.created,
            row: last.row,
        };
        position.encode(kind)
    });
    Ok(ItemPage { items, next })
}

/// Finds one thing by its id.
pub fn find(database: &Database, id: &str) -> Result<Option<MemoryItem>, ContextError> {
    database.read(|db| {
        let select = format!("SELECT {} FROM item WHERE id = ?1", stored::COLUMNS);
        let mut select = db.prepare_cached(&select)?;
        Ok(select.query_row([id], stored::item_from_row).optional()?)
    })
}

/// Finds a skill by its name; case, spaces and punctuation make no difference.
pub fn find_skill(database: &Database, name: &str) -> Result<Option<MemoryItem>, ContextError> {
    let hash = save::skill_hash(name);
    database.read(|db| Ok(stored::find_by_hash(db, ItemKind::Skill, &hash)?))
}

/// Removes one thing. Says whether it was there.
///
/// It is found no more; to have no trace of it in the file, see [`transfer::delete`](crate::transfer::delete).
pub fn delete(database: &Database, id: &str) -> Result<bool, ContextError> {
    database.write(|db| Ok(db.execute("DELETE FROM item WHERE id = ?1", [id])? > 0))
}

/// Counts one more use of each of these things. Ids that are not there are passed over.
pub fn record_use(database: &Database, ids: &[&str]) -> Result<(), ContextError> {
    // Where nothing can be written, what is found is worth more than the count.
    if ids.is_empty() || database.is_read_only() {
        return Ok(());
    }
    database.write(|db| {
        let mut update = db.prepare_cached("UPDATE item SET usage = usage + 1 WHERE id = ?1")?;
        for id in ids {
            update.execute([id])?;
        }
        Ok(())
    })
}
