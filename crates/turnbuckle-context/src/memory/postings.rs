//! Where the terms of a question occur.
//!
//! FTS5 scores every row that has any of the terms, which takes a second where there are many rows and the terms are
//! common. Here the rows of each term are listed, newest first and so many at most; how rare the term is follows from
//! the list. Only the rows that have most of the question are looked at any closer.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::{ItemKind, rows};

/// Rows that are listed for all terms together, and the least for one.
const MAX_ROWS: usize = 12_000;
const MIN_ROWS_PER_TERM: usize = 500;
/// Terms that a question can have; a row has a bit for each.
pub(super) const MAX_TERMS: usize = 64;
/// Rows that are listed for several common terms at once.
const MAX_COOCCURRENCE_ROWS: usize = 500;
/// Which of the common terms are looked for together, by how rare they are.
const COOCCURRENCE_SETS: [&[usize]; 4] = [&[0, 1, 2, 3], &[0, 1], &[0, 2], &[1, 2]];

/// Where the terms occur in one database, in things of one kind.
#[derive(Default)]
pub(super) struct TermPostings {
    lists: Vec<PostingList>,
    /// Rows that have several common terms, which their lists may have missed: which terms, and where.
    cooccurrences: Vec<(Vec<usize>, Vec<i64>)>,
    /// About how many things of the kind there are.
    item_count: f64,
}

#[derive(Default)]
struct PostingList {
    /// Newest first.
    rows: Vec<i64>,
    /// Whether older rows were left out.
    is_cut: bool,
    /// About how many rows have the term.
    count: f64,
}

impl TermPostings {
    /// Lists the rows of each term.
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
        // Rows are numbered without gaps but for what was removed.
        let item_count = (newest - oldest + 1) as f64;
        let most = (MAX_ROWS / terms.len().max(1)).max(MIN_ROWS_PER_TERM);
        let mut lists = Vec::with_capacity(terms.len());
        for term in terms {
            let rows = matching_rows(db, kind, &quote(term), most)?;
            let is_cut = rows.len() == most;
            let count = match rows.last() {
                // As many in the rest as in what was seen.
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

    /// Rows that have several of the common terms, however old they are.
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
        for places in COOCCURRENCE_SETS {
            let set: Option<Vec<usize>> = places.iter().map(|&at| cut.get(at).copied()).collect();
            let Some(set) = set else { continue };
            let all: Vec<String> = set.iter().map(|&term| quote(&terms[term])).collect();
            let rows = matching_rows(db, kind, &all.join(" AND "), MAX_COOCCURRENCE_ROWS)?;
            self.cooccurrences.push((set, rows));
        }
        Ok(())
    }

    /// How much each term tells, where several databases are asked.
    pub(super) fn term_weights(several: &[Self], terms: &[String]) -> Vec<f64> {
        let item_count: f64 = several.iter().map(|one| one.item_count).sum();
        let weight = |(at, term): (usize, &String)| {
            let count: f64 = several.iter().map(|one| one.lists[at].count).sum();
            // A phrase that is nowhere is only one of the ways to write what its words say.
            if count == 0.0 && term.contains(' ') {
                return 0.0;
            }
            let seen = count.max(1.0);
            let rarity = (1.0 + (item_count - seen + 0.5).max(0.5) / (seen + 0.5)).ln();
            // A word that was never saved is as rare as can be, but more often it is just a way to put the question.
            if count == 0.0 { rarity / 2.0 } else { rarity }
        };
        terms.iter().enumerate().map(weight).collect()
    }

    /// The rows that have most of the question, best first; of equals the newest first.
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

/// A row that has some of the question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowCandidate {
    pub(super) row: i64,
    weight: f64,
    /// A bit for each term that FTS5 found in it. A term whose list was cut may be in it without its bit.
    terms: u64,
}

impl RowCandidate {
    /// A row that FTS5 found nothing in.
    pub(super) fn for_row(row: i64) -> Self {
        Self {
            row,
            weight: 0.0,
            terms: 0,
        }
    }

    /// Whether FTS5 found the term in it.
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

/// The first and the last row of a kind.
fn row_bounds(db: &Connection, kind: ItemKind) -> rusqlite::Result<Option<(i64, i64)>> {
    let range = rows::row_range(kind);
    // Each end by itself is a look at one page; both in one SELECT would read them all.
    let ends = "SELECT (SELECT min(row) FROM item WHERE row BETWEEN ?1 AND ?2), \
                (SELECT max(row) FROM item WHERE row BETWEEN ?1 AND ?2)";
    let ends: (Option<i64>, Option<i64>) = db
        .prepare_cached(ends)?
        .query_row([range.start(), range.end()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(ends.0.zip(ends.1))
}

/// The newest rows of a kind that match.
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

/// A term is letters, digits and spaces; in quotes it is nothing but that to FTS5.
fn quote(term: &str) -> String {
    format!("\"{term}\"")
}
