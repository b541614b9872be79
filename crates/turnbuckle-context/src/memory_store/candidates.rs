//! Candidates of a search: the items that contain its terms.

use super::ItemNumber;

/// Maximum number of listed items for all terms, and minimum limit per term.
const MAX_LISTED: usize = 12_000;
const MIN_LISTED_PER_TERM: usize = 500;
/// Combinations of common terms that are searched together, as indices ordered by rarity.
const COOCCURRENCE_SETS: [&[usize]; 4] = [&[0, 1, 2, 3], &[0, 1], &[0, 2], &[1, 2]];

/// The items of one partition and kind that contain the terms of a query, as lists by term.
///
/// Scoring every item that contains any term takes a second for common terms. Instead the items of each term are listed, newest
/// first and up to a limit. A list also yields an estimate of how rare the term is.
///
/// # What matches
///
/// A term consists of words of letters and digits, in lower case, with single spaces between them. It matches an item if title,
/// body, detail, tags or [search words](crate::memory::PreparedItem::search_words) contain these words one after the other in
/// the same member. Words are compared as FTS5 does with `porter unicode61 remove_diacritics 2`. SQLite does that itself. Any
/// other store has to do the same, for stored texts and for terms, and must not leave it to a text search of its own, because
/// the quality of search is measured with these rules:
///
/// 1. A text is split at every character that is not in the Unicode categories L*, N* or Co; so `_`, `-` and `'` separate words.
///    Marks (M*) that follow a letter belong to its word, and are dropped with its diacritics.
/// 2. Each character is folded to lower case by Unicode's simple case folding, as of Unicode 6.1.
/// 3. Diacritics are removed from Latin letters, also if a code point has several of them: `ộ` becomes `o`. Letters that are not
///    composed of a base letter and marks, such as `ø` and `ß`, stay.
/// 4. The Porter stemmer (the original of 1980, not Porter 2) is applied to words of 3 to 64 bytes. FTS5 applies it to any bytes;
///    only the ASCII letters `a` to `z` take part in its rules.
/// 5. Every word counts, also the most frequent ones.
/// 6. Positions count per member, so that a term of several words matches only adjacent words, and never across two members. Tags
///    are one member: the JSON text of the array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermCandidates {
    /// One list per term, in the order of the terms.
    pub lists: Vec<TermList>,
    /// Items with several common terms, which the truncated lists may lack; see
    /// [`cooccurrence_sets`](Self::cooccurrence_sets).
    pub cooccurrences: Vec<Cooccurrence>,
    /// Estimated number of items of the kind.
    pub item_count: f64,
}

/// The items that contain one term.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermList {
    /// The items, newest first.
    pub numbers: Vec<ItemNumber>,
    /// True if older items were omitted.
    pub is_cut: bool,
    /// Estimated number of items with the term, including the omitted ones.
    pub count: f64,
}

/// The items that contain all of several terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cooccurrence {
    /// Indices of the terms.
    pub terms: Vec<usize>,
    /// The items, newest first.
    pub numbers: Vec<ItemNumber>,
}

impl TermCandidates {
    /// Maximum number of items in a [`Cooccurrence`].
    pub const MAX_COOCCURRENCES: usize = 500;

    /// Returns the candidates in a partition without items of the kind.
    pub fn without_items(terms: usize) -> Self {
        Self {
            lists: vec![TermList::default(); terms],
            ..Self::default()
        }
    }

    /// Returns the candidates of terms: the newest items of each term, at most `most` of them, in a kind with these first and last
    /// numbers.
    pub(crate) fn from_lists(
        lists: Vec<Vec<ItemNumber>>,
        most: usize,
        oldest: i64,
        newest: i64,
    ) -> Self {
        // Numbers are consecutive except for removed items.
        let item_count = (newest - oldest + 1) as f64;
        let list = |numbers: Vec<ItemNumber>| {
            let is_cut = numbers.len() == most;
            let count = match numbers.last() {
                // Assume the same frequency in the omitted items.
                Some(last) if is_cut => most as f64 * item_count / (newest - last.get() + 1) as f64,
                _ => numbers.len() as f64,
            };
            TermList {
                numbers,
                is_cut,
                count,
            }
        };
        Self {
            lists: lists.into_iter().map(list).collect(),
            cooccurrences: Vec::new(),
            item_count,
        }
    }

    /// Returns the maximum length of each list for this number of terms.
    pub fn max_listed(terms: usize) -> usize {
        (MAX_LISTED / terms.max(1)).max(MIN_LISTED_PER_TERM)
    }

    /// Returns the sets of terms for which a store has to add cooccurrences, given the lists.
    pub fn cooccurrence_sets(&self) -> Vec<Vec<usize>> {
        let mut cut: Vec<usize> = (0..self.lists.len())
            .filter(|&term| self.lists[term].is_cut)
            .collect();
        cut.sort_by(|&one, &other| self.lists[one].count.total_cmp(&self.lists[other].count));
        let set = |indices: &&[usize]| indices.iter().map(|&at| cut.get(at).copied()).collect();
        COOCCURRENCE_SETS.iter().filter_map(set).collect()
    }
}
