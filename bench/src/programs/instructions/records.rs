//! The ratios that were reached before, so that a more expensive request is noticed while it is still within its budget.

use std::{collections::BTreeMap, sync::LazyLock};

/// How far above its record a ratio may be: compilers and dependencies change, too.
pub(crate) const ROOM: f64 = 1.10;

/// The same for a budget that is not reached yet: no more than callgrind itself varies.
pub(crate) const ROOM_OF_MISSED: f64 = 1.02;

/// Returns the recorded ratio of a scenario.
pub(crate) fn record(scenario: &str) -> Option<f64> {
    static RECORDS: LazyLock<BTreeMap<String, f64>> = LazyLock::new(|| {
        let written = include_str!("../../../records.json");
        serde_json::from_str(written).expect("records.json is an object of numbers")
    });
    RECORDS.get(scenario).copied()
}

/// Formats ratios as in the file of records.
pub(crate) fn write(ratios: impl IntoIterator<Item = (&'static str, f64)>) -> String {
    let rows: Vec<_> = ratios
        .into_iter()
        .map(|(name, ratio)| format!("  \"{name}\": {ratio:.3}"))
        .collect();
    format!("{{\n{}\n}}", rows.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::instructions::scenario::SCENARIOS;

    #[test]
    fn every_scenario_that_is_compared_has_a_record_within_its_budget_or_misses_it() {
        for scenario in SCENARIOS.iter().filter(|one| one.budget.has_record) {
            let record = record(scenario.name).expect(scenario.name);

            let budget = scenario.budget.times.unwrap_or(f64::INFINITY);
            // A budget that has been reached since must not be marked as missed.
            assert_eq!(
                record > budget,
                scenario.budget.is_missed,
                "{}",
                scenario.name
            );
        }
    }

    #[test]
    fn written_results_can_be_read() {
        let written = write([("a", 1.25), ("b", 0.9)]);

        let read: BTreeMap<String, f64> = serde_json::from_str(&written).unwrap();
        assert_eq!(read["a"], 1.25);
    }
}
