//! Finding what is remembered.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use super::postings::{Candidate, Postings};
use super::score::Question;
use super::{Item, Kind, dense, stored};
use crate::code::Dense;
use crate::{ContextError, Database};

/// A question has so many answers at most.
const MOST_HITS: usize = 1_000;
/// So many things are compared with the question, however few are wanted.
const LEAST_COMPARED: usize = 64;
/// So many are looked through for those of one branch.
const MOST_OF_ANY_BRANCH: usize = 4_000;

/// A question to what is remembered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// What kind of thing is looked for.
    pub kind: Kind,
    /// The question: a sentence, a name, an error message.
    pub text: String,
    /// How many at most.
    pub limit: usize,
    /// Only what was saved on this branch.
    pub branch: Option<String>,
    /// Milliseconds since 1970, to know how old things are.
    pub now: i64,
    /// How fast things lose weight.
    pub half_life: HalfLife,
    /// Nothing below this score, from 0 to 1.
    pub least_score: f64,
    /// The question as an embedding, if there is a provider.
    pub dense: Option<Dense>,
}

/// How fast things lose weight by their age: half of what they can lose after each half-life, and never all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfLife {
    /// For checkpoints.
    pub checkpoint: Duration,
    /// For remediations.
    pub remediation: Duration,
    /// For skills.
    pub skill: Duration,
}

/// Something that answers the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// What was found.
    pub item: Item,
    /// How well it answers, from 0 to 1.
    pub score: f64,
    /// The place in the list of databases where it was found.
    pub source: usize,
}

impl MemoryQuery {
    /// Asks for ten things of a kind, as of now.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            limit: 10,
            branch: None,
            now: crate::database::now(),
            half_life: HalfLife::default(),
            least_score: 0.0,
            dense: None,
        }
    }
}

impl Default for HalfLife {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        Self {
            checkpoint: days(30),
            remediation: days(365),
            skill: days(730),
        }
    }
}

/// Finds what answers a question, best first; with equal scores the newest first.
///
/// One word of the question is enough to be found. Several databases are searched as if they were one.
pub fn search(databases: &[&Database], query: &MemoryQuery) -> Result<Vec<Hit>, ContextError> {
    let question = Question::new(query.kind, &query.text);
    let mut postings = Vec::with_capacity(databases.len());
    for database in databases {
        let gather = |db: &_| Ok(Postings::gather(db, query.kind, &question.terms)?);
        postings.push(database.read(|db| gather(db))?);
    }
    let weights = Postings::weights(&postings, &question.terms);
    let mut found = Vec::new();
    for (source, (database, postings)) in databases.iter().zip(&postings).enumerate() {
        let candidates = candidates(database, query, postings.best(&weights, listed(query)))?;
        for (candidate, item) in candidates {
            let score = question.score(&weights, &candidate, &item);
            found.push(Hit::new(item, score, source).weighted(query));
        }
    }
    found.sort_by(best_first);
    if let Some(dense) = &query.dense {
        let near = near(databases, query, dense)?;
        found = dense::fused(found, near);
    }
    found.retain(|hit| hit.score >= query.least_score);
    found.truncate(limit(query));
    Ok(found)
}

/// The things that are nearest by meaning, nearest first; their score is their nearness.
fn near(
    databases: &[&Database],
    query: &MemoryQuery,
    dense: &Dense,
) -> Result<Vec<Hit>, ContextError> {
    let mut near = Vec::new();
    for (source, database) in databases.iter().enumerate() {
        let nearest = |db: &_| Ok(dense::nearest(db, query.kind, dense, listed(query))?);
        let rows = database.read(|db| nearest(db))?;
        let nearness: HashMap<i64, f64> = rows.iter().copied().collect();
        let rows = rows
            .into_iter()
            .map(|(row, _)| Candidate::without_terms(row));
        for (candidate, item) in candidates(database, query, rows.collect())? {
            let hit = Hit::new(item, nearness[&candidate.row], source);
            near.push(hit.weighted(query));
        }
    }
    near.sort_by(best_first);
    Ok(near)
}

/// The first of these rows that are wanted.
fn candidates(
    database: &Database,
    query: &MemoryQuery,
    rows: Vec<Candidate>,
) -> Result<Vec<(Candidate, Item)>, ContextError> {
    database.read(|db| {
        let mut found = Vec::new();
        for candidate in rows {
            if found.len() == wanted(query) {
                break;
            }
            if let Some(branch) = &query.branch
                && !stored::is_on_branch(db, candidate.row, branch)?
            {
                continue;
            }
            // It may have been removed since it was listed.
            if let Some(item) = stored::by_row(db, candidate.row)? {
                found.push((candidate, item));
            }
        }
        Ok(found)
    })
}

impl Hit {
    fn new(item: Item, score: f64, source: usize) -> Self {
        Self {
            item,
            score,
            source,
        }
    }

    /// What is old counts less, and so does what one was not sure of.
    fn weighted(mut self, query: &MemoryQuery) -> Self {
        let age = query.now.saturating_sub(self.item.updated);
        self.score *= query.half_life.weight(query.kind, age) * self.item.confidence;
        self
    }
}

fn best_first(one: &Hit, other: &Hit) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    let by_age = other.item.updated.cmp(&one.item.updated);
    by_score.then(by_age).then(one.item.id.cmp(&other.item.id))
}

fn limit(query: &MemoryQuery) -> usize {
    query.limit.clamp(1, MOST_HITS)
}

/// How many things are compared with the question.
fn wanted(query: &MemoryQuery) -> usize {
    LEAST_COMPARED.max(2 * limit(query))
}

/// How many rows are listed, so that enough of them are wanted.
fn listed(query: &MemoryQuery) -> usize {
    match query.branch {
        Some(_) => MOST_OF_ANY_BRANCH.max(wanted(query)),
        None => wanted(query),
    }
}
