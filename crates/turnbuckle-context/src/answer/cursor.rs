//! Where the next page of a search begins.

use crate::ContextError;
use crate::owner::short_hash;

/// Items that a search can be paged through. Whoever looks further had better ask something else.
const FURTHEST: usize = 1_000;

/// A place in the results of one search.
///
/// The cursor is the number of items before it and a mark of the search, so that it is not used with another one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    mark: String,
    offset: usize,
}

impl Place {
    /// Reads a cursor that was given out for the search that `parts` describe; without one the place is the beginning.
    pub(crate) fn of(cursor: Option<&str>, parts: &[&str]) -> Result<Self, ContextError> {
        let mark = short_hash(parts);
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(Self { mark, offset: 0 });
        };
        let place = cursor
            .split_once('-')
            .and_then(|(offset, theirs)| Some((offset.parse::<usize>().ok()?, theirs)))
            .filter(|(offset, theirs)| *offset <= FURTHEST && *theirs == mark);
        match place {
            Some((offset, _)) => Ok(Self { mark, offset }),
            None => Err(ContextError::refused(
                "`cursor` is not of this search; leave it out to begin with the best results",
            )),
        }
    }

    /// Items that were shown before.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// How many items to look for, to show `limit` of them and know whether there are more.
    pub(crate) fn reach(&self, limit: usize) -> usize {
        self.offset + limit + 1
    }

    /// The cursor behind so many more items, if there is anything to show there.
    pub(crate) fn next(&self, shown: usize, found: usize) -> Option<String> {
        let offset = self.offset + shown;
        (shown > 0 && offset < found && offset <= FURTHEST)
            .then(|| format!("{offset}-{}", self.mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_on_in_its_own_search_only() {
        let start = Place::of(None, &["a", "b"]).unwrap();
        let cursor = start.next(5, 6).unwrap();
        assert_eq!(Place::of(Some(&cursor), &["a", "b"]).unwrap().offset(), 5);
        assert!(Place::of(Some(&cursor), &["ab", ""]).is_err());
        assert_eq!(start.next(6, 6), None);
        assert_eq!(
            start.next(0, 6),
            None,
            "a cursor that leads nowhere new is none"
        );
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in [
            "-",
            "x",
            "1",
            "99999999999999999999-aa",
            "5-0000000000000000",
        ] {
            assert!(Place::of(Some(text), &["a"]).is_err(), "{text}");
        }
    }
}
