//! The judged queries, asked of the packages they are about.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    failure::Failure,
    indexed::Indexed,
    judged::{Asked, Judged, Kind, Query},
    measure::{LOOKED_AT, Worth},
    report::{Goal, Miss, Report, Row},
};

/// All queries that were looked at while the ranking was made.
const TUNED: &str = "tuned";
/// All plain queries of packages that were not used to tune the ranking.
const PLAINLY: &str = "plainly asked";
const GOAL: f64 = 0.80;
/// The recorded minimums, with a margin for noise.
const FLOORS: [(&str, f64); 2] = [(TUNED, 0.73), (PLAINLY, 0.80)];

/// The scores of one query.
pub(crate) struct Answered {
    tuned: bool,
    asked: Asked,
    kind: Kind,
    pub(crate) category: Option<String>,
    worth: Worth,
    time: Duration,
}

pub(crate) fn measure(folders: &[String]) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    let mut misses = Vec::new();
    let mut all: Vec<Answered> = Vec::new();
    for judged in Judged::all()? {
        let found = found(&judged, folders, LOOKED_AT)?;
        let answered = weigh(&judged, found, &mut misses);
        let note = if judged.tuned {
            ""
        } else {
            ", never looked at"
        };
        rows.push(row(format!("{}{note}", judged.package), answered.iter()));
        all.extend(answered);
    }
    let tuned = all.iter().filter(|answered| answered.tuned);
    let plainly = all.iter().filter(|one| one.asked == Asked::Plainly);
    rows.insert(0, row(TUNED.to_owned(), tuned));
    rows.insert(1, row(PLAINLY.to_owned(), plainly));
    misses.sort_by(|one, other| one.ndcg.total_cmp(&other.ndcg));
    Ok(Report {
        rows,
        goals: FLOORS
            .map(|(row, floor)| Goal::new(row, GOAL, floor))
            .into(),
        misses,
    })
}

/// The search results of one query.
pub(crate) struct Found {
    pub(crate) files: Vec<String>,
    time: Duration,
}

/// The search results of each query of a package, best first.
pub(crate) fn found(
    judged: &Judged,
    folders: &[String],
    limit: usize,
) -> Result<Vec<Found>, Failure> {
    let Some(folder) = find(&places(folders), &judged.folder()) else {
        let message = format!(
            "there is no {}: run search-eval/fetch.py first",
            judged.folder()
        );
        return Err(Failure::new(message));
    };
    ask(judged, &folder, limit)
}

/// Asks each query about the package in this folder.
pub(crate) fn ask(judged: &Judged, folder: &Path, limit: usize) -> Result<Vec<Found>, Failure> {
    let index = Indexed::new(folder)?;
    let search = |query: &Query| {
        let begun = Instant::now();
        let files = index.search(&query.text, limit)?;
        let time = begun.elapsed();
        Ok(Found { files, time })
    };
    judged.queries.iter().map(search).collect()
}

fn places(folders: &[String]) -> Vec<PathBuf> {
    if folders.is_empty() {
        return vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/eval")];
    }
    folders.iter().map(PathBuf::from).collect()
}

/// A folder of this name, among those given or in one of them.
fn find(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    let itself = |folder: &&PathBuf| folder.ends_with(name);
    let inside = || folders.iter().map(|folder| folder.join(name));
    let itself = folders.iter().find(itself).cloned();
    itself.or_else(|| inside().find(|folder| folder.is_dir()))
}

/// Weighs what was found for the queries about a package, and adds what may be shown of it to the misses.
pub(crate) fn weigh(judged: &Judged, found: Vec<Found>, misses: &mut Vec<Miss>) -> Vec<Answered> {
    let mut answered = Vec::with_capacity(judged.queries.len());
    for (query, Found { files, time }) in judged.queries.iter().zip(found) {
        let grades: Vec<u32> = files.iter().map(|path| query.grade(path)).collect();
        let worth = Worth::of(&grades, &query.grades());
        // Held-out queries are not shown.
        if judged.tuned && worth.ndcg < 0.9 {
            let graded = |path: &String| format!("{} {path}", query.grade(path));
            let wanted = query
                .relevant
                .iter()
                .map(|file| format!("{} {}", file.grade, file.path));
            misses.push(Miss {
                question: query.text.clone(),
                ndcg: worth.ndcg,
                wanted: wanted.collect(),
                found: files.iter().map(graded).collect(),
            });
        }
        answered.push(Answered {
            tuned: judged.tuned,
            asked: judged.asked,
            kind: query.kind,
            category: query.category.clone(),
            worth,
            time,
        });
    }
    answered
}

pub(crate) fn row<'a>(name: String, answered: impl Iterator<Item = &'a Answered>) -> Row {
    let answered: Vec<&Answered> = answered.collect();
    let worths: Vec<Worth> = answered.iter().map(|one| one.worth).collect();
    let times = answered.iter().map(|one| one.time).collect();
    let of = |kind: Kind| {
        let mut some = answered.iter().filter(|one| one.kind == kind).peekable();
        some.peek()?;
        Some(Worth::mean(some.map(|one| one.worth)).ndcg)
    };
    Row {
        natural: of(Kind::Natural),
        symbol: of(Kind::Symbol),
        ..Row::new(name, &worths, times)
    }
}
