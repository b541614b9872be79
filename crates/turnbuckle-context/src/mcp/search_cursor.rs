//! Cursors of search results.

use crate::{ContextError, owner::short_hash};

/// Maximum offset of a search page.
const MAX_OFFSET: usize = 1_000;

/// A position in the results of one search.
///
/// The cursor contains the number of items before it and a hash of the search, so that it is rejected for any other
/// search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SearchCursor {
    search_hash: String,
    offset: usize,
}

impl SearchCursor {
    /// Parses a cursor that was returned for the search described by `parts`. Without a cursor, the position is the
    /// start.
    pub(crate) fn parse(cursor: Option<&str>, parts: &[&str]) -> Result<Self, ContextError> {
        let search_hash = short_hash(parts);
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(Self {
                search_hash,
                offset: 0,
            });
        };
        let cursor_parts = cursor
            .split_once('-')
            .and_then(|(offset, hash)| Some((offset.parse::<usize>().ok()?, hash)))
            .filter(|(offset, hash)| *offset <= MAX_OFFSET && *hash == search_hash);
        match cursor_parts {
            Some((offset, _)) => Ok(Self {
                search_hash,
                offset,
            }),
            None => Err(ContextError::invalid(
                "`cursor` does not belong to this search; omit it to start with the best results",
            )),
        }
    }

    /// Returns the number of items before this position.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Returns how many items to fetch in order to return `limit` items and know whether more exist.
    pub(crate) fn fetch_limit(&self, limit: usize) -> usize {
        self.offset + limit + 1
    }

    /// Returns the cursor after `shown` more items, or `None` if no items follow.
    pub(crate) fn next_cursor(&self, shown: usize, found: usize) -> Option<String> {
        let offset = self.offset + shown;
        (shown > 0 && offset < found && offset <= MAX_OFFSET)
            .then(|| format!("{offset}-{}", self.search_hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_for_its_own_search_only() {
        let start = SearchCursor::parse(None, &["a", "b"]).unwrap();
        let cursor = start.next_cursor(5, 6).unwrap();
        assert_eq!(
            SearchCursor::parse(Some(&cursor), &["a", "b"])
                .unwrap()
                .offset(),
            5
        );
        assert!(SearchCursor::parse(Some(&cursor), &["ab", ""]).is_err());
        assert_eq!(start.next_cursor(6, 6), None);
        assert_eq!(start.next_cursor(0, 6), None, "a cursor always advances");
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for text in [
            "-",
            "x",
            "1",
            "99999999999999999999-aa",
            "5-0000000000000000",
        ] {
            assert!(SearchCursor::parse(Some(text), &["a"]).is_err(), "{text}");
        }
    }
}
