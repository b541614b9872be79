//! CoSQA: search engine queries, each with the one function that answers it.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use serde::Deserialize;

use crate::{
    error::EvalError,
    indexed_folder::IndexedFolder,
    report::{EvalReport, MissedQuery, ReportRow, ScoreGoal},
    score::{RESULT_LIMIT, SearchScore},
};

const GOAL: f64 = 0.38;
const NAME: &str = "cosqa";

#[derive(Deserialize)]
struct CosqaQuery {
    doc: String,
    retrieval_idx: u32,
}

pub(crate) fn measure() -> Result<EvalReport, EvalError> {
    let data = data()?;
    let functions: HashMap<String, u32> = read(&data.join("code_idx_map.txt"))?;
    let queries: Vec<CosqaQuery> = read(&data.join("cosqa-retrieval-test-500.json"))?;
    let folder = tempfile::tempdir()?;
    for (function, number) in &functions {
        fs::write(folder.path().join(file_name(*number)), function)?;
    }
    let index = IndexedFolder::new(folder.path())?;
    run_queries(&index, &queries)
}

fn run_queries(index: &IndexedFolder, queries: &[CosqaQuery]) -> Result<EvalReport, EvalError> {
    let (mut scores, mut times, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for query in queries {
        let started = Instant::now();
        let found = index.search(&query.doc, RESULT_LIMIT)?;
        times.push(started.elapsed());
        let wanted = file_name(query.retrieval_idx);
        let grades: Vec<u32> = found
            .iter()
            .map(|path| u32::from(*path == wanted))
            .collect();
        let score = SearchScore::new(&grades, &[1]);
        scores.push(score);
        if score.mrr < 1.0 {
            missed.push(MissedQuery {
                query: query.doc.clone(),
                ndcg: score.ndcg,
                wanted: vec![wanted],
                found,
            });
        }
    }
    Ok(EvalReport {
        rows: vec![ReportRow::new(NAME, &scores, times)],
        goals: vec![ScoreGoal::new(NAME, GOAL, GOAL)],
        missed,
    })
}

fn data() -> Result<PathBuf, EvalError> {
    let missing = || EvalError::new("not run: TURNBUCKLE_DATA is not set");
    let data = std::env::var_os("TURNBUCKLE_DATA").ok_or_else(missing)?;
    Ok(Path::new(&data).join("corpora").join("cosqa"))
}

fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, EvalError> {
    let text = fs::read_to_string(file).map_err(|error| EvalError::at(file, error))?;
    serde_json::from_str(&text).map_err(|error| EvalError::at(file, error))
}

/// Returns a name without searchable words.
fn file_name(number: u32) -> String {
    format!("{number:05}.py")
}
