//! Runs the judged queries on their packages.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    error::EvalError,
    indexed_folder::IndexedFolder,
    query_set::{JudgedQuery, QueryKind, QuerySet, QueryStyle},
    report::{EvalReport, MissedQuery, ReportRow, ScoreGoal},
    score::{RESULT_LIMIT, SearchScore},
};

/// All queries that were used to tune the ranking.
const TUNED: &str = "tuned";
/// All plain queries. They were not used to tune the ranking.
const PLAIN: &str = "plain";
const GOAL: f64 = 0.80;
/// The recorded minimums, with a margin for noise.
const FLOORS: [(&str, f64); 2] = [(TUNED, 0.73), (PLAIN, 0.80)];

/// The scores of one query.
pub(crate) struct ScoredQuery {
    tuned: bool,
    style: QueryStyle,
    kind: QueryKind,
    pub(crate) category: Option<String>,
    score: SearchScore,
    time: Duration,
}

pub(crate) fn measure(folders: &[String]) -> Result<EvalReport, EvalError> {
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    let mut all: Vec<ScoredQuery> = Vec::new();
    for query_set in QuerySet::all()? {
        let found = found(&query_set, folders, RESULT_LIMIT)?;
        let scored = score_results(&query_set, found, &mut missed);
        let note = if query_set.tuned { "" } else { ", held out" };
        rows.push(row(format!("{}{note}", query_set.package), scored.iter()));
        all.extend(scored);
    }
    let tuned = all.iter().filter(|scored| scored.tuned);
    let plain = all.iter().filter(|one| one.style == QueryStyle::Plain);
    rows.insert(0, row(TUNED.to_owned(), tuned));
    rows.insert(1, row(PLAIN.to_owned(), plain));
    missed.sort_by(|one, other| one.ndcg.total_cmp(&other.ndcg));
    Ok(EvalReport {
        rows,
        goals: FLOORS
            .map(|(row, floor)| ScoreGoal::new(row, GOAL, floor))
            .into(),
        missed,
    })
}

/// The search results of one query.
pub(crate) struct QueryResult {
    pub(crate) files: Vec<String>,
    time: Duration,
}

/// The search results of each query of a package, best first.
pub(crate) fn found(
    query_set: &QuerySet,
    folders: &[String],
    limit: usize,
) -> Result<Vec<QueryResult>, EvalError> {
    let Some(folder) = find(&search_folders(folders), &query_set.folder()) else {
        let message = format!(
            "{} is missing: run search-eval/fetch.py first",
            query_set.folder()
        );
        return Err(EvalError::new(message));
    };
    search_all(query_set, &folder, limit)
}

/// Runs each query on the package in this folder.
pub(crate) fn search_all(
    query_set: &QuerySet,
    folder: &Path,
    limit: usize,
) -> Result<Vec<QueryResult>, EvalError> {
    let index = IndexedFolder::new(folder)?;
    let search = |query: &JudgedQuery| {
        let started = Instant::now();
        let files = index.search(&query.text, limit)?;
        let time = started.elapsed();
        Ok(QueryResult { files, time })
    };
    query_set.queries.iter().map(search).collect()
}

fn search_folders(folders: &[String]) -> Vec<PathBuf> {
    if folders.is_empty() {
        return vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/eval")];
    }
    folders.iter().map(PathBuf::from).collect()
}

/// Returns the folder with this name, among the given ones or in one of them.
fn find(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let itself = |folder: &&PathBuf| folder.ends_with(name);
    let inside = || folders.iter().map(|folder| folder.join(name));
    let itself = folders.iter().find(itself).cloned();
    itself.or_else(|| inside().find(|folder| folder.is_dir()))
}

/// Scores the results of the queries of a package, and adds tuned queries with a low score to `missed`.
pub(crate) fn score_results(
    query_set: &QuerySet,
    found: Vec<QueryResult>,
    missed: &mut Vec<MissedQuery>,
) -> Vec<ScoredQuery> {
    let mut scored = Vec::with_capacity(query_set.queries.len());
    for (query, QueryResult { files, time }) in query_set.queries.iter().zip(found) {
        let grades: Vec<u32> = files.iter().map(|path| query.grade(path)).collect();
        let score = SearchScore::new(&grades, &query.grades());
        // Held-out queries are never listed.
        if query_set.tuned && score.ndcg < 0.9 {
            let graded = |path: &String| format!("{} {path}", query.grade(path));
            let wanted = query
                .relevant
                .iter()
                .map(|file| format!("{} {}", file.grade, file.path));
            missed.push(MissedQuery {
                query: query.text.clone(),
                ndcg: score.ndcg,
                wanted: wanted.collect(),
                found: files.iter().map(graded).collect(),
            });
        }
        scored.push(ScoredQuery {
            tuned: query_set.tuned,
            style: query_set.style,
            kind: query.kind,
            category: query.category.clone(),
            score,
            time,
        });
    }
    scored
}

pub(crate) fn row<'a>(name: String, scored: impl Iterator<Item = &'a ScoredQuery>) -> ReportRow {
    let scored: Vec<&ScoredQuery> = scored.collect();
    let scores: Vec<SearchScore> = scored.iter().map(|one| one.score).collect();
    let times = scored.iter().map(|one| one.time).collect();
    let of = |kind: QueryKind| {
        let mut some = scored.iter().filter(|one| one.kind == kind).peekable();
        some.peek()?;
        Some(SearchScore::mean(some.map(|one| one.score)).ndcg)
    };
    ReportRow {
        natural: of(QueryKind::Natural),
        symbol: of(QueryKind::Symbol),
        ..ReportRow::new(name, &scores, times)
    }
}
