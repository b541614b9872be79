//! Where a page ended, as text that says nothing to its reader.

use super::ItemKind;
use crate::{ContextError, owner::short_hash};

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
