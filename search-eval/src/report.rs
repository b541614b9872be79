//! The figures, for people and for programs.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::measure::Worth;

/// All that was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) goals: Vec<Goal>,
    #[serde(skip)]
    pub(crate) misses: Vec<Miss>,
}

/// The figures of some questions.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) questions: usize,
    pub(crate) ndcg_at_10: f64,
    pub(crate) mrr_at_10: f64,
    /// By kind of question, where there are kinds.
    pub(crate) natural: Option<f64>,
    pub(crate) symbol: Option<f64>,
    /// Milliseconds that half of the searches took less than.
    pub(crate) median_ms: f64,
}

/// The goal of a row.
#[derive(Serialize)]
pub(crate) struct Goal {
    row: &'static str,
    ndcg_at_10: f64,
    /// The recorded minimum, with a margin for noise; a lower figure is a failure.
    floor: f64,
}

/// A query whose best file is not ranked first.
pub(crate) struct Miss {
    pub(crate) question: String,
    pub(crate) ndcg: f64,
    pub(crate) wanted: Vec<String>,
    pub(crate) found: Vec<String>,
}

impl Report {
    /// Says whether nothing got worse.
    pub(crate) fn is_good_enough(&self) -> bool {
        self.goals
            .iter()
            .all(|goal| self.reaches(goal.row, goal.floor))
    }

    fn reaches(&self, row: &str, wanted: f64) -> bool {
        let mut judged = self.rows.iter().filter(|known| known.name == row);
        judged.all(|row| row.ndcg_at_10 >= wanted)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names are always JSON")
    }

    pub(crate) fn to_table(&self, with_misses: bool) -> String {
        let mut text = String::from(
            "                        questions  nDCG@10  MRR@10  natural  symbol  median ms\n",
        );
        for row in &self.rows {
            let part = |worth: Option<f64>| worth.map_or("-".into(), |worth| format!("{worth:.3}"));
            let _ = writeln!(
                text,
                "{:<24}{:>9}  {:>7.3}  {:>6.3}  {:>7}  {:>6}  {:>9.1}",
                row.name,
                row.questions,
                row.ndcg_at_10,
                row.mrr_at_10,
                part(row.natural),
                part(row.symbol),
                row.median_ms,
            );
        }
        for goal in &self.goals {
            let _ = writeln!(text, "{}", self.verdict(goal));
        }
        text.truncate(text.trim_end().len());
        if with_misses {
            self.write_misses(&mut text);
        }
        text
    }

    fn verdict(&self, goal: &Goal) -> String {
        let Goal {
            row,
            ndcg_at_10,
            floor,
        } = goal;
        let verdict = match (self.reaches(row, *ndcg_at_10), self.reaches(row, *floor)) {
            (true, _) => "reached",
            (false, true) => "missed, but no worse than before",
            (false, false) => "missed, and worse than before",
        };
        format!("goal: nDCG@10 of {row} at least {ndcg_at_10:.2}: {verdict}")
    }

    fn write_misses(&self, text: &mut String) {
        for miss in &self.misses {
            let _ = write!(text, "\n\n{:.2}  {}", miss.ndcg, miss.question);
            for wanted in &miss.wanted {
                let _ = write!(text, "\n      wanted {wanted}");
            }
            for found in &miss.found {
                let _ = write!(text, "\n      found  {found}");
            }
        }
    }
}

impl Goal {
    pub(crate) fn new(row: &'static str, ndcg_at_10: f64, floor: f64) -> Self {
        Self {
            row,
            ndcg_at_10,
            floor,
        }
    }
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, worths: &[Worth], mut times: Vec<Duration>) -> Self {
        let mean = Worth::mean(worths.iter().copied());
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Self {
            name: name.into(),
            questions: worths.len(),
            ndcg_at_10: mean.ndcg,
            mrr_at_10: mean.mrr,
            natural: None,
            symbol: None,
            median_ms: median.as_secs_f64() * 1e3,
        }
    }
}
