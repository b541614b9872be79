//! Posting lists of the terms of a query.
//!
//! FTS5 scores every row that contains any term, which takes a second for common terms in many rows. Instead, the rows of each
//! term are listed, newest first and up to a limit. The list also yields an estimate of how rare the term is. Only the rows with
//! the highest total weight are scored.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::{ItemKind, rows};

/// Maximum number of listed rows for all terms, and minimum limit per term.
const MAX_ROWS: usize = 12_000;
const MIN_ROWS_PER_TERM: usize = 500;
/// Maximum number of terms in a query; a row has one bit per term.
pub(super) const MAX_TERMS: usize = 64;
/// Maximum number of rows listed for a combination of common terms.
const MAX_COOCCURRENCE_ROWS: usize = 500;
/// Combinations of common terms that are searched together, as indices ordered by rarity.
const COOCCURRENCE_SETS: [&[usize]; 4] = [&[0, 1, 2, 3], &[0, 1], &[0, 2], &[1, 2]];

/// Posting lists for one database and one kind of items.
#[derive(Default)]
pub(super) struct TermPostings {
    lists: Vec<PostingList>,
    /// Combinations of common terms with their rows, which the truncated lists may lack.
    cooccurrences: Vec<(Vec<usize>, Vec<i64>)>,
    /// Estimated number of items of the kind.
    item_count: f64,
}

#[derive(Default)]
struct PostingList {
    /// The rows, newest first.
    rows: Vec<i64>,
    /// True if older rows were omitted.
    is_cut: bool,
    /// Estimated number of rows with the term.
    count: f64,
}

impl TermPostings {
    /// Loads the rows of each term.
    pub(super) fn load(
        db: &Connection,
        kind: ItemKind,
        terms: &[String],
    ) -> rusqlite::Result<Self> {
        let Some((oldest, newest)) = row_bounds(db, kind)? else {
            return Ok(Self {
                lists: terms.iter().map(|_| PostingList::default()).collect(),
                ..Self::default()
            });
        };
        // Row ids are consecutive except for deleted items.
        let item_count = (newest - oldest + 1) as f64;
        let most = (MAX_ROWS / terms.len().max(1)).max(MIN_ROWS_PER_TERM);
        let mut lists = Vec::with_capacity(terms.len());
        for term in terms {
            let rows = matching_rows(db, kind, &quote(term), most)?;
            let is_cut = rows.len() == most;
            let count = match rows.last() {
                // Assume the same frequency in the omitted rows.
                Some(last) if is_cut => most as f64 * item_count / (newest - last + 1) as f64,
                _ => rows.len() as f64,
            };
            lists.push(PostingList {
                rows,
                is_cut,
                count,
            });
        }
        let mut postings = Self {
            lists,
            cooccurrences: Vec::new(),
            item_count,
        };
        postings.load_cooccurrences(db, kind, terms)?;
        Ok(postings)
    }

    /// Loads rows of any age that contain several common terms.
    fn load_cooccurrences(
        &mut self,
        db: &Connection,
        kind: ItemKind,
        terms: &[String],
    ) -> rusqlite::Result<()> {
        let mut cut: Vec<usize> = (0..terms.len())
            .filter(|&term| self.lists[term].is_cut)
            .collect();
        cut.sort_by(|&one, &other| self.lists[one].count.total_cmp(&self.lists[other].count));
        for indices in COOCCURRENCE_SETS {
            let set: Option<Vec<usize>> = indices.iter().map(|&at| cut.get(at).copied()).collect();
            let Some(set) = set else { continue };
            let all: Vec<String> = set.iter().map(|&term| quote(&terms[term])).collect();
            let rows = matching_rows(db, kind, &all.join(" AND "), MAX_COOCCURRENCE_ROWS)?;
            self.cooccurrences.push((set, rows));
        }
        Ok(())
    }

    /// Returns the weight of each term over several databases.
    pub(super) fn term_weights(several: &[Self], terms: &[String]) -> Vec<f64> {
        let item_count: f64 = several.iter().map(|one| one.item_count).sum();
        let weight = |(at, term): (usize, &String)| {
            let count: f64 = several.iter().map(|one| one.lists[at].count).sum();
            // A phrase without occurrences does not count: its words do.
            if count == 0.0 && term.contains(' ') {
                return 0.0;
            }
            let seen = count.max(1.0);
            let rarity = (1.0 + (item_count - seen + 0.5).max(0.5) / (seen + 0.5)).ln();
            // A word without occurrences would have the highest weight, but is often just part of the wording of the query.
            if count == 0.0 { rarity / 2.0 } else { rarity }
        };
        terms.iter().enumerate().map(weight).collect()
    }

    /// Returns the rows with the highest total weight, best first, then newest first.
    pub(super) fn best_rows(&self, weights: &[f64], most: usize) -> Vec<RowCandidate> {
        let mut candidates: HashMap<i64, RowCandidate> = HashMap::new();
        let mut add = |term: usize, rows: &[i64]| {
            for &row in rows {
                let new = RowCandidate::for_row(row);
                let candidate = candidates.entry(row).or_insert(new);
                candidate.add(term, weights[term]);
            }
        };
        for (term, list) in self.lists.iter().enumerate() {
            add(term, &list.rows);
        }
        for (terms, rows) in &self.cooccurrences {
            for &term in terms {
                add(term, rows);
            }
        }
        let mut candidates: Vec<RowCandidate> = candidates.into_values().collect();
        let order = |one: &RowCandidate, other: &RowCandidate| {
            let by_weight = other.weight.total_cmp(&one.weight);
            by_weight.then(other.row.cmp(&one.row))
        };
        if candidates.len() > most {
            candidates.select_nth_unstable_by(most, order);
            candidates.truncate(most);
        }
        candidates.sort_by(order);
        candidates
    }
}

/// A row that contains some terms of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowCandidate {
    pub(super) row: i64,
    weight: f64,
    /// One bit per term found by FTS5. If the list of a term was truncated, its bit may be missing.
    terms: u64,
}

impl RowCandidate {
    /// Creates a candidate without terms.
    pub(super) fn for_row(row: i64) -> Self {
        Self {
            row,
            weight: 0.0,
            terms: 0,
        }
    }

    /// Returns whether FTS5 found the term in the row.
    pub(super) fn has(&self, term: usize) -> bool {
        self.terms & (1 << term) != 0
    }

    fn add(&mut self, term: usize, weight: f64) {
        if !self.has(term) {
            self.terms |= 1 << term;
            self.weight += weight;
        }
    }
}

/// Returns the first and last row of a kind.
fn row_bounds(db: &Connection, kind: ItemKind) -> rusqlite::Result<Option<(i64, i64)>> {
    let range = rows::row_range(kind);
    // Two subqueries read one page each; `min` and `max` in one SELECT would read all rows.
    let ends = "SELECT (SELECT min(row) FROM item WHERE row BETWEEN ?1 AND ?2), \
                (SELECT max(row) FROM item WHERE row BETWEEN ?1 AND ?2)";
    let ends: (Option<i64>, Option<i64>) = db
        .prepare_cached(ends)?
        .query_row([range.start(), range.end()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(ends.0.zip(ends.1))
}

/// Returns the newest matching rows of a kind.
fn matching_rows(
    db: &Connection,
    kind: ItemKind,
    query: &str,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let range = rows::row_range(kind);
    let select = "SELECT rowid FROM item_fts WHERE item_fts MATCH ?1 \
                  AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";
    let mut select = db.prepare_cached(select)?;
    let parameters = params![query, range.start(), range.end(), most as i64];
    select.query_map(parameters, |row| row.get(0))?.collect()
}

/// Quotes a term for FTS5. Terms consist of letters, digits and spaces.
fn quote(term: &str) -> String {
    format!("\"{term}\"")
}
