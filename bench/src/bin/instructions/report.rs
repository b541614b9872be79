//! The figures side by side, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use turnbuckle_bench::callgrind::Cost;

use crate::{
    records::{self, ROOM, ROOM_OF_MISSED},
    scenario::Scenario,
};

/// All that was measured.
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
    /// What the ratio was before.
    pub(crate) record: Option<f64>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        Some(self.product.as_ref()?.instructions / self.limit.instructions)
    }

    /// What costs more than it may.
    fn excesses(&self) -> Vec<String> {
        let (Some(product), Some(ratio)) = (&self.product, self.ratio()) else {
            return Vec::new();
        };
        let budget = &self.scenario.budget;
        let record = self.record.filter(|_| budget.has_record);
        let room = match budget.is_missed {
            true => ROOM_OF_MISSED,
            false => ROOM,
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
            // What cannot be seen is not within any budget.
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

    /// Whether both servers said the same bytes; a ratio means little where they did not.
    fn same_answer(&self) -> bool {
        self.product
            .as_ref()
            .is_none_or(|product| product.answer == self.limit.answer)
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
            "sameAnswer": self.same_answer(),
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
                "reached now: say so in scenario.rs"
            };
            let _ = writeln!(table, "  the budget of {times:.3} is {word}");
        }
        for excess in self.excesses() {
            let _ = writeln!(table, "  over {excess}");
        }
        if let Some(product) = self.product.as_ref().filter(|_| !self.same_answer()) {
            let _ = writeln!(
                table,
                "  the answers differ:\n    {:.300}\n    {:.300}",
                self.limit.answer, product.answer
            );
        }
    }
}

/// A count as it is shown: what happens once in many requests is none of a request's.
fn shown(count: f64) -> f64 {
    (count * 10.0).round() / 10.0
}

impl Report {
    pub(crate) fn within_budget(&self) -> bool {
        self.rows.iter().all(|row| row.excesses().is_empty())
    }

    /// What was reached, to be kept as `records.json`.
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
    use crate::scenario::SCENARIOS;

    fn cost(instructions: f64, answer: &str) -> Cost {
        Cost {
            instructions,
            allocations: 30.0,
            writes: 1.0,
            spawns: Some(0.0),
            answer: answer.to_owned(),
        }
    }

    /// `http-modern-50`, where everything is judged.
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
    fn a_budget_that_is_missed_is_said_and_its_record_is_the_gate() {
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

        // 2 % of room, and 3 % between runs of one client.
        assert!(report(157.0).within_budget());
        assert!(!report(158.0).within_budget());
        assert!(report(150.0).table().contains("is not reached"));
        assert!(report(130.0).table().contains("is reached now"));
    }

    #[test]
    fn one_allocation_write_or_task_too_many_is_over_budget_and_so_is_what_cannot_be_seen() {
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
    fn the_table_shows_answers_that_differ() {
        let table = |answer| report(Some(cost(100.0, answer)), None).table();

        assert!(!table("a").contains("differ"));
        assert!(table("b").contains("differ"));
    }
}
