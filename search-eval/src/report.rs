//! The report, as a table or as JSON.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::score::SearchScore;

/// The result of an evaluation.
#[derive(Serialize)]
pub(crate) struct EvalReport {
    pub(crate) rows: Vec<ReportRow>,
    pub(crate) goals: Vec<ScoreGoal>,
    #[serde(skip)]
    pub(crate) missed: Vec<MissedQuery>,
}

/// The figures of a group of queries.
#[derive(Serialize)]
pub(crate) struct ReportRow {
    pub(crate) name: String,
    pub(crate) queries: usize,
    pub(crate) ndcg_at_10: f64,
    pub(crate) mrr_at_10: f64,
    /// nDCG@10 by kind of query, if there are kinds.
    pub(crate) natural: Option<f64>,
    pub(crate) symbol: Option<f64>,
    /// Median duration of a search in milliseconds.
    pub(crate) median_ms: f64,
}

/// The goal of a row.
#[derive(Serialize)]
pub(crate) struct ScoreGoal {
    row: &'static str,
    ndcg_at_10: f64,
    /// The recorded minimum, with a margin for noise; a lower figure is a failure.
    floor: f64,
}

/// A query for which the best file is not ranked first.
pub(crate) struct MissedQuery {
    pub(crate) query: String,
    pub(crate) ndcg: f64,
    pub(crate) wanted: Vec<String>,
    pub(crate) found: Vec<String>,
}

impl EvalReport {
    /// Returns whether all figures reach their recorded minimum.
    pub(crate) fn is_good_enough(&self) -> bool {
        self.goals
            .iter()
            .all(|goal| self.reaches(goal.row, goal.floor))
    }

    fn reaches(&self, row: &str, wanted: f64) -> bool {
        let mut query_set = self.rows.iter().filter(|known| known.name == row);
        query_set.all(|row| row.ndcg_at_10 >= wanted)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names are always JSON")
    }

    pub(crate) fn to_table(&self, with_missed: bool) -> String {
        let mut text = String::from(
            "                          queries  nDCG@10  MRR@10  natural  symbol  median ms\n",
        );
        for row in &self.rows {
            let part = |score: Option<f64>| score.map_or("-".into(), |score| format!("{score:.3}"));
            let _ = writeln!(
                text,
                "{:<24}{:>9}  {:>7.3}  {:>6.3}  {:>7}  {:>6}  {:>9.1}",
                row.name,
                row.queries,
                row.ndcg_at_10,
                row.mrr_at_10,
                part(row.natural),
                part(row.symbol),
                row.median_ms,
            );
        }
        for goal in &self.goals {
            let _ = writeln!(text, "{}", self.format_goal(goal));
        }
        text.truncate(text.trim_end().len());
        if with_missed {
            self.write_missed(&mut text);
        }
        text
    }

    fn format_goal(&self, goal: &ScoreGoal) -> String {
        let ScoreGoal {
            row,
            ndcg_at_10,
            floor,
        } = goal;
        let outcome = match (self.reaches(row, *ndcg_at_10), self.reaches(row, *floor)) {
            (true, _) => "reached",
            (false, true) => "missed, but at least the recorded minimum",
            (false, false) => "missed, and below the recorded minimum",
        };
        format!("goal: nDCG@10 of {row} at least {ndcg_at_10:.2}: {outcome}")
    }

    fn write_missed(&self, text: &mut String) {
        for missed_query in &self.missed {
            let _ = write!(text, "\n\n{:.2}  {}", missed_query.ndcg, missed_query.query);
            for wanted in &missed_query.wanted {
                let _ = write!(text, "\n      wanted {wanted}");
            }
            for found in &missed_query.found {
                let _ = write!(text, "\n      found  {found}");
            }
        }
    }
}

impl ScoreGoal {
    pub(crate) fn new(row: &'static str, ndcg_at_10: f64, floor: f64) -> Self {
        Self {
            row,
            ndcg_at_10,
            floor,
        }
    }
}

impl ReportRow {
    pub(crate) fn new(
        name: impl Into<String>,
        scores: &[SearchScore],
        mut times: Vec<Duration>,
    ) -> Self {
        let mean = SearchScore::mean(scores.iter().copied());
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Self {
            name: name.into(),
            queries: scores.len(),
            ndcg_at_10: mean.ndcg,
            mrr_at_10: mean.mrr,
            natural: None,
            symbol: None,
            median_ms: median.as_secs_f64() * 1e3,
        }
    }
}
