//! Looking things up without a question: the newest, by id, by name.

use rusqlite::{OptionalExtension as _, params};

use super::{ItemKind, MemoryItem, rows, save};
use crate::{ContextError, Database, owner::short_hash};

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
            rows::COLUMNS
        );
        let mut select = db.prepare_cached(&select)?;
        // One more tells whether there is more.
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

/// Finds one thing by its id.
pub fn find(database: &Database, id: &str) -> Result<Option<MemoryItem>, ContextError> {
    database.read(|db| {
        let select = format!("SELECT {} FROM item WHERE id = ?1", rows::COLUMNS);
        let mut select = db.prepare_cached(&select)?;
        Ok(select.query_row([id], rows::item_from_row).optional()?)
    })
}

/// Finds a skill by its name; case, spaces and punctuation make no difference.
pub fn find_skill(database: &Database, name: &str) -> Result<Option<MemoryItem>, ContextError> {
    let hash = save::skill_hash(name);
    database.read(|db| Ok(rows::find_by_hash(db, ItemKind::Skill, &hash)?))
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

/// The last thing of a page. What is saved later is before it, so the next page begins at the same place.
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

    /// Reads what [`encode`](Self::encode) made for the same kind.
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
            ContextError::invalid(
                "this cursor was not made here; leave it out to begin with the first page",
            )
        })
    }
}

fn checksum(kind: ItemKind, position: &str) -> String {
    short_hash(&["cursor", kind.as_str(), position])[..8].to_owned()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = ListCursor {
            created: -5,
            row: 1 << 40,
        };
        let text = cursor.encode(ItemKind::Skill);
        assert_eq!(ListCursor::parse(ItemKind::Skill, &text).unwrap(), cursor);
        assert!(ListCursor::parse(ItemKind::Checkpoint, &text).is_err());
    }

    #[test]
    fn letters_of_several_bytes_are_refused_though_the_check_holds() {
        let position = format!("{}é{}", "0".repeat(15), "0".repeat(15));
        let text = format!("{position}{}", checksum(ItemKind::Skill, &position));
        assert!(ListCursor::parse(ItemKind::Skill, &text).is_err());
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "0", &"0".repeat(40), &"é".repeat(20), &"f".repeat(4000)] {
            let error = ListCursor::parse(ItemKind::Skill, text).unwrap_err();
            assert!(matches!(error, ContextError::InvalidRequest(_)));
        }
    }
}
