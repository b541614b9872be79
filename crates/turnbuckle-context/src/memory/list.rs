//! Lists and lookups without a query: newest items, by id, by name.

use rusqlite::{OptionalExtension as _, params};

use super::{ItemKind, MemoryItem, rows, save};
use crate::{ContextError, Database, owner::short_hash};

/// Maximum number of items per page.
const MAX_PAGE_ITEMS: usize = 1_000;

/// A page of items.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemPage {
    /// The items, newest first.
    pub items: Vec<MemoryItem>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Returns the newest items of a kind, after a cursor. Items saved between two calls do not shift the pages.
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
            rows::COLUMNS
        );
        let mut select = db.prepare_cached(&select)?;
        // One more item shows whether another page follows.
        let parameters = params![kind.as_str(), after.created, after.row, (limit + 1) as i64];
        let items = select.query_map(parameters, rows::item_from_row)?;
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

/// Returns the item with this id.
pub fn find(database: &Database, id: &str) -> Result<Option<MemoryItem>, ContextError> {
    database.read(|db| {
        let select = format!("SELECT {} FROM item WHERE id = ?1", rows::COLUMNS);
        let mut select = db.prepare_cached(&select)?;
        Ok(select.query_row([id], rows::item_from_row).optional()?)
    })
}

/// Returns the skill with this name, ignoring case, spaces and punctuation.
pub fn find_skill(database: &Database, name: &str) -> Result<Option<MemoryItem>, ContextError> {
    let hash = save::skill_hash(name);
    database.read(|db| Ok(rows::find_by_hash(db, ItemKind::Skill, &hash)?))
}

/// Deletes an item. Returns whether it existed.
///
/// Traces of it remain in the file; see [`transfer::delete`](crate::transfer::delete) to remove them, too.
pub fn delete(database: &Database, id: &str) -> Result<bool, ContextError> {
    database.write(|db| Ok(db.execute("DELETE FROM item WHERE id = ?1", [id])? > 0))
}

/// Increments the usage count of items. Unknown ids are ignored.
pub fn record_use(database: &Database, ids: &[&str]) -> Result<(), ContextError> {
    // In a read-only database the count is skipped, so that the search succeeds.
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

/// The last item of a page. Items saved later come before it, so the next page starts at the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListCursor {
    pub(super) created: i64,
    pub(super) row: i64,
}

impl ListCursor {
    pub(super) fn encode(self, kind: ItemKind) -> String {
        let position = format!("{:016x}{:016x}", self.created, self.row);
        let check = checksum(kind, &position);
        position + &check
    }

    /// Parses the output of [`encode`](Self::encode) for the same kind.
    pub(super) fn parse(kind: ItemKind, text: &str) -> Result<Self, ContextError> {
        let parse = || {
            let (position, given) = text.split_at_checked(32)?;
            if given != checksum(kind, position) {
                return None;
            }
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            Some(Self {
                created: number(position.get(..16)?)?.cast_signed(),
                row: number(position.get(16..)?)?.cast_signed(),
            })
        };
        parse().ok_or_else(|| {
            ContextError::invalid("`cursor` is invalid; omit it to start with the first page")
        })
    }
}

fn checksum(kind: ItemKind, position: &str) -> String {
    short_hash(&["cursor", kind.as_str(), position])[..8].to_owned()
}

/// Returns ids with a prefix and their creation times, newest first.
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

/// Returns titles, newest first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_encoding_and_parsing() {
        let cursor = ListCursor {
            created: -5,
            row: 1 << 40,
        };
        let text = cursor.encode(ItemKind::Skill);
        assert_eq!(ListCursor::parse(ItemKind::Skill, &text).unwrap(), cursor);
        assert!(ListCursor::parse(ItemKind::Checkpoint, &text).is_err());
    }

    #[test]
    fn multi_byte_characters_are_rejected_even_with_a_valid_checksum() {
        let position = format!("{}é{}", "0".repeat(15), "0".repeat(15));
        let text = format!("{position}{}", checksum(ItemKind::Skill, &position));
        assert!(ListCursor::parse(ItemKind::Skill, &text).is_err());
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for text in ["", "0", &"0".repeat(40), &"é".repeat(20), &"f".repeat(4000)] {
            let error = ListCursor::parse(ItemKind::Skill, text).unwrap_err();
            assert!(matches!(error, ContextError::InvalidRequest(_)));
        }
    }
}
