//! The figures of both programs, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use turnbuckle_bench::callgrind::Cost;

use super::{
    records::{self, ROOM, ROOM_OF_MISSED},
    scenario::{Limit, Scenario},
};

/// All measurements of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

/// One scenario on both servers.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) scenario: &'static Scenario,
    pub(crate) limit: Cost,
    pub(crate) product: Option<Cost>,
    /// The recorded ratio.
    pub(crate) record: Option<f64>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        Some(self.product.as_ref()?.instructions / self.limit.instructions)
    }

    /// Returns the costs that exceed the budget.
    fn excesses(&self) -> Vec<String> {
        let (Some(product), Some(ratio)) = (&self.product, self.ratio()) else {
            return Vec::new();
        };
        let budget = &self.scenario.budget;
        let record = self.record.filter(|_| budget.has_record);
        let room = if budget.is_missed {
            ROOM_OF_MISSED
        } else {
            ROOM
        };
        let limits = [
            (
                "the budget",
                ratio,
                budget
                    .times
                    .filter(|_| !budget.is_missed)
                    .map(|times| times * budget.spread),
            ),
            (
                "the record",
                ratio,
                record.map(|record| record * room * budget.spread),
            ),
            (
                "allocations",
                shown(product.allocations),
                budget.allocations,
            ),
            ("writes", shown(product.writes), budget.writes),
            // A count that is not visible is within no budget.
            (
                "tasks",
                product.spawns.map_or(f64::INFINITY, shown),
                budget.spawns,
            ),
        ];
        let excess = limits.into_iter().filter_map(|(what, value, most)| {
            let most = most.filter(|most| value > *most)?;
            Some(format!("{what}: {value:.3} is more than {most:.3}"))
        });
        excess.collect()
    }

    /// Returns whether both servers sent the same bytes; a ratio means little if they did not. Names of tools of several
    /// servers have prefixes.
    fn same_response(&self) -> bool {
        self.scenario.limit == Limit::PlainServer
            || self
                .product
                .as_ref()
                .is_none_or(|product| product.response == self.limit.response)
    }
}

impl Row {
    fn json(&self) -> Value {
        let cost = |cost: &Cost| {
            json!({
                "instructions": cost.instructions.round(),
                "allocations": cost.allocations,
                "writes": cost.writes,
                "tasks": cost.spawns,
            })
        };
        json!({
            "name": self.scenario.name,
            "bare": cost(&self.limit),
            "product": self.product.as_ref().map(cost),
            "ratio": self.ratio(),
            "budget": self.scenario.budget.times,
            "record": self.record,
            "excesses": self.excesses(),
            "sameAnswer": self.same_response(),
        })
    }

    fn write(&self, table: &mut String) {
        let product = |of: &dyn Fn(&Cost) -> String| self.product.as_ref().map_or("-".into(), of);
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
        let pair = |of: fn(&Cost) -> f64| {
            let product = product(&|cost| format!("{:.1}", of(cost)));
            format!("{:.1} / {product}", of(&self.limit))
        };
        let _ = writeln!(
            table,
            "{:<24} {:>10.0} {:>11} {:>7} {:>7} {:>7}   {:>13} {:>11} {:>11}",
            self.scenario.name,
            self.limit.instructions,
            product(&|cost| format!("{:.0}", cost.instructions)),
            ratio(self.ratio()),
            ratio(self.scenario.budget.times),
            ratio(self.record),
            pair(|cost| cost.allocations),
            pair(|cost| cost.writes),
            pair(|cost| cost.spawns.unwrap_or(f64::NAN)),
        );
        let missed = self
            .scenario
            .budget
            .times
            .filter(|_| self.scenario.budget.is_missed);
        if let (Some(times), Some(ratio)) = (missed, self.ratio()) {
            let word = if ratio > times {
                "not reached"
            } else {
                "reached now: update scenario.rs"
            };
            let _ = writeln!(table, "  the budget of {times:.3} is {word}");
        }
        for excess in self.excesses() {
            let _ = writeln!(table, "  over {excess}");
        }
        if self
            .product
            .as_ref()
            .is_some_and(|cost| cost.spawns.is_none())
        {
            let _ = writeln!(
                table,
                "  tasks are not visible without symbols: build with CARGO_PROFILE_DIST_STRIP=none"
            );
        }
        if let Some(product) = self.product.as_ref().filter(|_| !self.same_response()) {
            let _ = writeln!(
                table,
                "  the responses differ:\n    {:.300}\n    {:.300}",
                self.limit.response, product.response
            );
        }
    }
}

/// Formats a count; an event that occurs once in many requests is not counted.
fn shown(count: f64) -> f64 {
    (count * 10.0).round() / 10.0
}

impl Report {
    pub(crate) fn within_budget(&self) -> bool {
        self.rows.iter().all(|row| row.excesses().is_empty())
    }

    /// Returns the reached ratios, for `records.json`.
    pub(crate) fn records(&self) -> String {
        let compared = self
            .rows
            .iter()
            .filter(|row| row.scenario.budget.has_record);
        records::write(compared.filter_map(|row| Some((row.scenario.name, row.ratio()?))))
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(Row::json).collect();
        json!({ "perRequest": rows }).to_string()
    }

    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{:<24} {:>10} {:>11} {:>7} {:>7} {:>7}   {:>13} {:>11} {:>11}\n",
            "per request",
            "bare",
            "echo-server",
            "ratio",
            "budget",
            "record",
            "allocations",
            "writes",
            "tasks"
        );
        for row in &self.rows {
            row.write(&mut table);
        }
        table.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::instructions::scenario::SCENARIOS;

    fn cost(instructions: f64, response: &str) -> Cost {
        Cost {
            instructions,
            allocations: 30.0,
            writes: 1.0,
            spawns: Some(0.0),
            response: response.to_owned(),
        }
    }

    /// `http-modern-50`, which has a budget for everything.
    fn report(product: Option<Cost>, record: Option<f64>) -> Report {
        Report {
            rows: vec![Row {
                scenario: &SCENARIOS[0],
                limit: cost(100.0, "a"),
                product,
                record,
            }],
        }
    }

    #[test]
    fn a_budget_is_exceeded_only_above_it() {
        assert!(report(Some(cost(130.0, "a")), None).within_budget());
        assert!(!report(Some(cost(131.0, "a")), None).within_budget());
        assert!(report(None, None).within_budget());
    }

    #[test]
    fn a_record_leaves_a_tenth_of_room() {
        assert!(report(Some(cost(109.0, "a")), Some(1.0)).within_budget());
        assert!(!report(Some(cost(111.0, "a")), Some(1.0)).within_budget());
    }

    #[test]
    fn missed_budget_is_reported_and_checked_against_its_record() {
        let scenario = SCENARIOS.iter().find(|one| one.budget.is_missed);
        // Every budget may be reached one day.
        let Some(scenario) = scenario else { return };
        let report = |instructions| Report {
            rows: vec![Row {
                scenario,
                limit: cost(100.0, "a"),
                product: Some(cost(instructions, "a")),
                record: Some(1.5),
            }],
        };

        // 2 % of room, and the difference between runs of the same program.
        let highest = 150.0 * 1.02 * scenario.budget.spread;
        assert!(report(highest - 0.5).within_budget());
        assert!(!report(highest + 0.5).within_budget());
        assert!(report(highest).table().contains("is not reached"));
        assert!(report(130.0).table().contains("is reached now"));
    }

    #[test]
    fn one_allocation_write_or_task_too_many_is_over_budget_and_so_is_an_unknown_count() {
        type Change = fn(&mut Cost);
        let more: [Change; 4] = [
            |cost| cost.spawns = None,
            |cost| cost.allocations += 1.0,
            |cost| cost.writes += 1.0,
            |cost| cost.spawns = Some(1.0),
        ];
        for change in more {
            let mut product = cost(100.0, "a");
            change(&mut product);

            assert!(!report(Some(product), None).within_budget());
        }
    }

    #[test]
    fn the_table_says_how_to_build_if_tasks_are_not_visible() {
        let table = |spawns| {
            let product = Cost {
                spawns,
                ..cost(100.0, "a")
            };
            report(Some(product), None).table()
        };

        assert!(!table(Some(0.0)).contains("STRIP"));
        assert!(table(None).contains("build with CARGO_PROFILE_DIST_STRIP=none"));
    }

    #[test]
    fn the_table_shows_responses_that_differ() {
        let table = |response| report(Some(cost(100.0, response)), None).table();

        assert!(!table("a").contains("differ"));
        assert!(table("b").contains("differ"));
    }
}
