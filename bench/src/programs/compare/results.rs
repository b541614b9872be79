//! All measurements, in the form in which they are stored.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};
use turnbuckle_bench::Failure;

use super::{
    figure::{Goal, Metric},
    peer::Role,
};

/// The measured figures.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    pub(crate) cases: Vec<Case>,
}

/// One figure on every peer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) group: String,
    pub(crate) case: String,
    /// The time of the measurement, in UTC.
    pub(crate) measured: String,
    /// The machine on which it was measured; a part of the figures can be measured again on another one.
    pub(crate) machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<Goal>,
    pub(crate) rows: Vec<Row>,
    /// The peers without a row, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) absent: BTreeMap<String, String>,
}

/// One figure on one peer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) peer: String,
    pub(crate) role: Role,
    /// Every round's value of each metric, in the order of the rounds.
    pub(crate) values: Vec<(Metric, Vec<f64>)>,
}

impl Row {
    /// Returns the median of a metric.
    pub(crate) fn median(&self, metric: Metric) -> Option<f64> {
        let (_, values) = self.values.iter().find(|(of, _)| *of == metric)?;
        median(values)
    }
}

impl Case {
    /// Returns the row with this role.
    pub(crate) fn row_of(&self, role: Role) -> Option<&Row> {
        self.rows.iter().find(|row| row.role == role)
    }

    /// Returns whether ours has reached the target; `None` without a target, or without a value to compare with.
    pub(crate) fn is_reached(&self) -> Option<bool> {
        let goal = self.goal?;
        let median = |role| self.row_of(role)?.median(goal.metric);
        goal.is_reached(median(Role::Ours)?, median(Role::Limit))
    }
}

impl Results {
    /// Reads a file of results.
    pub(crate) fn read(path: &Path) -> Result<Results, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes them as a file that changes line by line.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Inserts a measured case, replacing the earlier one of the same name.
    pub(crate) fn put(&mut self, case: Case) {
        let same = |old: &&mut Case| (&old.group, &old.case) == (&case.group, &case.case);
        match self.cases.iter_mut().find(same) {
            Some(old) => *old = case,
            None => self.cases.push(case),
        }
    }
}

/// Returns the median of some values; of an even number of them, the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_case_measured_again_replaces_itself_only() {
        let case = |case: &str, measured: &str| Case {
            group: "http".into(),
            case: case.into(),
            measured: measured.into(),
            machine: "two cores".into(),
            goal: None,
            rows: Vec::new(),
            absent: BTreeMap::new(),
        };
        let mut results = Results::default();

        results.put(case("a", "1"));
        results.put(case("b", "1"));
        results.put(case("a", "2"));

        assert_eq!(results.cases, [case("a", "2"), case("b", "1")]);
    }
}
