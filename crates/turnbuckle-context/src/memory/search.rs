//! Search in stored items.

use std::{cmp::Ordering, collections::HashMap, time::Duration};

use super::{
    ItemKind, MemoryItem,
    candidates::{ItemCandidate, best_candidates, term_weights},
    score::PreparedQuery,
};
use crate::{
    ContextError,
    code_search::EmbeddingQuery,
    memory_store::{ItemNumber, ItemSelection, MemoryStore, Partition},
    text::rank_fusion::RankFusion,
};

/// Maximum number of hits.
const MAX_HITS: usize = 1_000;
/// Minimum number of scored items, even if fewer are requested.
const MIN_COMPARED: usize = 64;
/// Number of items examined if only one branch is searched.
const MAX_LISTED_OF_ALL_BRANCHES: usize = 4_000;

/// A search in stored items.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// The kind to search for.
    pub kind: ItemKind,
    /// The query: a sentence, a name or an error message.
    pub text: String,
    /// Maximum number of hits.
    pub limit: usize,
    /// Restricts the search to items saved on this branch.
    pub branch: Option<String>,
    /// The current time in milliseconds since 1970, from which ages are computed.
    pub now: i64,
    /// The decay of the score by age.
    pub half_life: HalfLife,
    /// Minimum score, from 0 to 1.
    pub min_score: f64,
    /// Embedding of the query, for vector search.
    pub embedding: Option<EmbeddingQuery>,
}

/// The decay of the score by age. After each half-life, half of the variable part of the score is lost; the rest stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfLife {
    /// For checkpoints.
    pub checkpoint: Duration,
    /// For remediations.
    pub remediation: Duration,
    /// For skills.
    pub skill: Duration,
}

/// A search hit.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryHit {
    /// The item.
    pub item: MemoryItem,
    /// The score, from 0 to 1.
    pub score: f64,
    /// The index of the partition in the list.
    pub source: usize,
}

impl MemoryQuery {
    /// Creates a query for ten items of a kind, with the current time.
    pub fn new(kind: ItemKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            limit: 10,
            branch: None,
            now: crate::storage::database::now(),
            half_life: HalfLife::default(),
            min_score: 0.0,
            embedding: None,
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

/// Returns matching items, best first; with equal scores the newest first.
///
/// One word of the query is enough for a match. Several partitions are searched as if they were one.
pub(crate) async fn search(
    store: &dyn MemoryStore,
    partitions: &[Partition],
    query: &MemoryQuery,
) -> Result<Vec<MemoryHit>, ContextError> {
    let prepared = PreparedQuery::new(query.kind, &query.text);
    let mut listed = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let candidates = store.candidates(partition, query.kind, &prepared.terms);
        listed.push(candidates.await?);
    }
    let weights = term_weights(&listed, &prepared.terms);
    let mut found = Vec::new();
    for (source, (partition, listed)) in partitions.iter().zip(&listed).enumerate() {
        let best = best_candidates(listed, &weights, listed_count(query));
        for (candidate, item) in load_candidates(store, partition, query, best).await? {
            let score = prepared.score(&weights, &candidate, &item);
            found.push(MemoryHit::new(item, score, source).apply_weights(query));
        }
    }
    found.sort_by(best_first);
    if let Some(embedding) = &query.embedding {
        let near = nearest_items(store, partitions, query, embedding).await?;
        found = fuse_hits(found, near);
    }
    found.retain(|hit| hit.score >= query.min_score);
    found.truncate(limit(query));
    Ok(found)
}

/// Returns the nearest items by embedding, nearest first; the score is the cosine similarity.
async fn nearest_items(
    store: &dyn MemoryStore,
    partitions: &[Partition],
    query: &MemoryQuery,
    embedding: &EmbeddingQuery,
) -> Result<Vec<MemoryHit>, ContextError> {
    let mut near = Vec::new();
    for (source, partition) in partitions.iter().enumerate() {
        let nearest = store.nearest(partition, query.kind, embedding, listed_count(query));
        let nearest = nearest.await?;
        let nearness: HashMap<ItemNumber, f64> = nearest.iter().copied().collect();
        let candidates = nearest
            .into_iter()
            .map(|(number, _)| ItemCandidate::for_number(number));
        for (candidate, item) in
            load_candidates(store, partition, query, candidates.collect()).await?
        {
            let hit = MemoryHit::new(item, nearness[&candidate.number], source);
            near.push(hit.apply_weights(query));
        }
    }
    near.sort_by(best_first);
    Ok(near)
}

/// Loads the first items that match the filters of the query.
async fn load_candidates(
    store: &dyn MemoryStore,
    partition: &Partition,
    query: &MemoryQuery,
    candidates: Vec<ItemCandidate>,
) -> Result<Vec<(ItemCandidate, MemoryItem)>, ContextError> {
    let numbers: Vec<_> = candidates
        .iter()
        .map(|candidate| candidate.number)
        .collect();
    let selection = ItemSelection {
        numbers: &numbers,
        branch: query.branch.as_deref(),
        limit: compared_count(query),
    };
    let items = store.items(partition, selection).await?;
    // The items have the order of the candidates; some are missing, such as those that were removed since.
    let mut candidates = candidates.into_iter();
    let with_candidate = |item: MemoryItem| {
        let candidate = candidates.find(|candidate| candidate.number == item.number)?;
        Some((candidate, item))
    };
    Ok(items.into_iter().filter_map(with_candidate).collect())
}

impl MemoryHit {
    fn new(item: MemoryItem, score: f64, source: usize) -> Self {
        Self {
            item,
            score,
            source,
        }
    }

    /// Reduces the score by age and by lack of confidence.
    fn apply_weights(mut self, query: &MemoryQuery) -> Self {
        let age = query.now.saturating_sub(self.item.updated);
        self.score *= query.half_life.weight(query.kind, age) * self.item.confidence;
        self
    }
}

fn best_first(one: &MemoryHit, other: &MemoryHit) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    let by_age = other.item.updated.cmp(&one.item.updated);
    by_score.then(by_age).then(one.item.id.cmp(&other.item.id))
}

fn limit(query: &MemoryQuery) -> usize {
    query.limit.clamp(1, MAX_HITS)
}

/// Returns the number of items to score.
fn compared_count(query: &MemoryQuery) -> usize {
    MIN_COMPARED.max(2 * limit(query))
}

/// Returns the number of items to list, so that enough of them match the filters.
fn listed_count(query: &MemoryQuery) -> usize {
    match query.branch {
        Some(_) => MAX_LISTED_OF_ALL_BRANCHES.max(compared_count(query)),
        None => compared_count(query),
    }
}

/// Weight of the ranking by embedding relative to the ranking by words.
const VECTOR_WEIGHT: f64 = 0.3;

/// Merges two rankings, best first.
///
/// The scores by words and by embedding cannot be compared, so the ranks decide. The reported score is the score by words,
/// increased by the similarity; it never increases along the list.
pub(super) fn fuse_hits(words: Vec<MemoryHit>, near: Vec<MemoryHit>) -> Vec<MemoryHit> {
    let key = |hit: &MemoryHit| (hit.source, hit.item.number);
    let order = RankFusion::new()
        .list(1.0, words.iter().map(key))
        .list(VECTOR_WEIGHT, near.iter().map(key))
        .ranked();
    let mut hits: HashMap<_, MemoryHit> = HashMap::new();
    for hit in words {
        hits.insert(key(&hit), hit);
    }
    for hit in near {
        let nearness = VECTOR_WEIGHT * hit.score.clamp(0.0, 1.0);
        let known = hits
            .entry(key(&hit))
            .or_insert(MemoryHit { score: 0.0, ..hit });
        known.score = 1.0 - (1.0 - known.score) * (1.0 - nearness);
    }
    let mut last = 1.0_f64;
    let ranked = order.into_iter().filter_map(|(key, _)| hits.remove(&key));
    ranked
        .map(|mut hit| {
            last = last.min(hit.score);
            hit.score = last;
            hit
        })
        .collect()
}
