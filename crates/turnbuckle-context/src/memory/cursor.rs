//! Where a page ended, as text that says nothing to its reader.

use super::Kind;
use crate::ContextError;
use crate::owner::short_hash;

/// The last thing of a page. What is saved later is before it, so the next page begins at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) created: i64,
    pub(super) row: i64,
}

impl Cursor {
    pub(super) fn write(self, kind: Kind) -> String {
        let place = format!("{:016x}{:016x}", self.created, self.row);
        let check = check(kind, &place);
        place + &check
    }

    /// Reads what [`write`](Self::write) made for the same kind.
    pub(super) fn read(kind: Kind, text: &str) -> Result<Self, ContextError> {
        let parse = || {
            let (place, given) = text.split_at_checked(32)?;
            if given != check(kind, place) {
                return None;
            }
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            Some(Self {
                created: number(place.get(..16)?)?.cast_signed(),
                row: number(place.get(16..)?)?.cast_signed(),
            })
        };
        parse().ok_or_else(|| {
            ContextError::refused(
                "this cursor was not made here; leave it out to begin with the first page",
            )
        })
    }
}

fn check(kind: Kind, place: &str) -> String {
    short_hash(&["cursor", kind.as_str(), place])[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor {
            created: -5,
            row: 1 << 40,
        };
        let text = cursor.write(Kind::Skill);
        assert_eq!(Cursor::read(Kind::Skill, &text).unwrap(), cursor);
        assert!(Cursor::read(Kind::Checkpoint, &text).is_err());
    }

    #[test]
    fn letters_of_several_bytes_are_refused_though_the_check_holds() {
        let place = format!("{}é{}", "0".repeat(15), "0".repeat(15));
        let text = format!("{place}{}", check(Kind::Skill, &place));
        assert!(Cursor::read(Kind::Skill, &text).is_err());
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "0", &"0".repeat(40), &"é".repeat(20), &"f".repeat(4000)] {
            let error = Cursor::read(Kind::Skill, text).unwrap_err();
            assert!(matches!(error, ContextError::Refused(_)));
        }
    }
}
