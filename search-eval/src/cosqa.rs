//! CoSQA: questions that people asked a search engine, and the one function that answers each.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use serde::Deserialize;

use crate::{
    failure::Failure,
    indexed::Indexed,
    measure::{LOOKED_AT, Worth},
    report::{Goal, Miss, Report, Row},
};

const GOAL: f64 = 0.38;
const NAME: &str = "cosqa";

#[derive(Deserialize)]
struct Question {
    doc: String,
    retrieval_idx: u32,
}

pub(crate) fn measure() -> Result<Report, Failure> {
    let data = data()?;
    let functions: HashMap<String, u32> = read(&data.join("code_idx_map.txt"))?;
    let questions: Vec<Question> = read(&data.join("cosqa-retrieval-test-500.json"))?;
    let folder = tempfile::tempdir()?;
    for (function, number) in &functions {
        fs::write(folder.path().join(file_name(*number)), function)?;
    }
    let index = Indexed::new(folder.path())?;
    answer(&index, &questions)
}

fn answer(index: &Indexed, questions: &[Question]) -> Result<Report, Failure> {
    let (mut worths, mut times, mut misses) = (Vec::new(), Vec::new(), Vec::new());
    for question in questions {
        let begun = Instant::now();
        let found = index.search(&question.doc, LOOKED_AT)?;
        times.push(begun.elapsed());
        let wanted = file_name(question.retrieval_idx);
        let grades: Vec<u32> = found
            .iter()
            .map(|path| u32::from(*path == wanted))
            .collect();
        let worth = Worth::of(&grades, &[1]);
        worths.push(worth);
        if worth.mrr < 1.0 {
            misses.push(Miss {
                question: question.doc.clone(),
                ndcg: worth.ndcg,
                wanted: vec![wanted],
                found,
            });
        }
    }
    Ok(Report {
        rows: vec![Row::new(NAME, &worths, times)],
        goals: vec![Goal::new(NAME, GOAL, GOAL)],
        misses,
    })
}

fn data() -> Result<PathBuf, Failure> {
    let missing = || Failure::new("not run: TURNBUCKLE_DATA is not set");
    let data = std::env::var_os("TURNBUCKLE_DATA").ok_or_else(missing)?;
    Ok(Path::new(&data).join("corpora").join("cosqa"))
}

fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(file).map_err(|error| Failure::at(file, error))?;
    serde_json::from_str(&text).map_err(|error| Failure::at(file, error))
}

/// The name says nothing that could be found.
fn file_name(number: u32) -> String {
    format!("{number:05}.py")
}
