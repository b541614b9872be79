//! Lists and lookups without a query: newest items, by id, by name.

use super::{ItemKind, MemoryItem, save};
use crate::{
    ContextError,
    memory_store::{ItemNumber, ListPosition, MemoryStore, MemoryStoreError, Partition},
    owner::short_hash,
};

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
pub(crate) async fn list(
    store: &dyn MemoryStore,
    partition: &Partition,
    kind: ItemKind,
    limit: usize,
    after: Option<&str>,
) -> Result<ItemPage, ContextError> {
    let limit = limit.clamp(1, MAX_PAGE_ITEMS);
    let after = after.map(|text| parse_cursor(kind, text)).transpose()?;
    // One more item shows whether another page follows.
    let mut items = store.list(partition, kind, after, limit + 1).await?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| {
        let position = ListPosition {
            created: last.created,
            number: last.number,
        };
        encode_cursor(kind, position)
    });
    Ok(ItemPage { items, next })
}

/// Returns the skill with this name, ignoring case, spaces and punctuation.
pub(crate) async fn find_skill(
    store: &dyn MemoryStore,
    partition: &Partition,
    name: &str,
) -> Result<Option<MemoryItem>, MemoryStoreError> {
    let hash = save::skill_hash(name);
    store.find_by_hash(partition, ItemKind::Skill, &hash).await
}

/// Encodes the last item of a page. Items saved later come before it, so the next page starts at the same position.
fn encode_cursor(kind: ItemKind, position: ListPosition) -> String {
    let position = format!("{:016x}{:016x}", position.created, position.number.get());
    let check = checksum(kind, &position);
    position + &check
}

/// Parses the output of [`encode_cursor`] for the same kind.
fn parse_cursor(kind: ItemKind, text: &str) -> Result<ListPosition, ContextError> {
    let parse = || {
        let (position, given) = text.split_at_checked(32)?;
        if given != checksum(kind, position) {
            return None;
        }
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(ListPosition {
            created: number(position.get(..16)?)?.cast_signed(),
            number: ItemNumber::new(number(position.get(16..)?)?.cast_signed()),
        })
    };
    parse().ok_or_else(|| {
        ContextError::invalid("`cursor` is invalid; omit it to start with the first page")
    })
}

fn checksum(kind: ItemKind, position: &str) -> String {
    short_hash(&["cursor", kind.as_str(), position])[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_encoding_and_parsing() {
        let position = ListPosition {
            created: -5,
            number: ItemNumber::new(1 << 40),
        };
        let text = encode_cursor(ItemKind::Skill, position);
        assert_eq!(parse_cursor(ItemKind::Skill, &text).unwrap(), position);
        assert!(parse_cursor(ItemKind::Checkpoint, &text).is_err());
    }

    #[test]
    fn multi_byte_characters_are_rejected_even_with_a_valid_checksum() {
        let position = format!("{}é{}", "0".repeat(15), "0".repeat(15));
        let text = format!("{position}{}", checksum(ItemKind::Skill, &position));
        assert!(parse_cursor(ItemKind::Skill, &text).is_err());
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for text in ["", "0", &"0".repeat(40), &"é".repeat(20), &"f".repeat(4000)] {
            let error = parse_cursor(ItemKind::Skill, text).unwrap_err();
            assert!(matches!(error, ContextError::InvalidRequest(_)));
        }
    }
}
