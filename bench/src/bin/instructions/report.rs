//! The figures side by side, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    callgrind::Cost,
    scenario::{Budget, Scenario},
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
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        Some(self.product.as_ref()?.instructions / self.limit.instructions)
    }

    fn exceeds_budget(&self) -> bool {
        let Budget::AtMost(budget) = self.scenario.budget else {
            return false;
        };
        self.ratio().is_some_and(|ratio| ratio > budget)
    }

    /// Whether both servers said the same bytes; a ratio means little where they did not.
    fn same_answer(&self) -> bool {
        self.product
            .as_ref()
            .is_none_or(|product| product.answer == self.limit.answer)
    }

    fn json(&self) -> Value {
        let cost = |cost: &Cost| json!({"instructions": cost.instructions.round(), "allocations": cost.allocations, "writes": cost.writes});
        json!({
            "name": self.scenario.name,
            "bare": cost(&self.limit),
            "echo-server": self.product.as_ref().map(cost),
            "ratio": self.ratio(),
            "budget": self.scenario.budget.value(),
            "exceeded": self.exceeds_budget(),
            "sameAnswer": self.same_answer(),
        })
    }
}

impl Budget {
    fn value(self) -> f64 {
        match self {
            Budget::AtMost(budget) | Budget::Aim(budget) => budget,
        }
    }
}

impl Report {
    pub(crate) fn within_budget(&self) -> bool {
        !self.rows.iter().any(Row::exceeds_budget)
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(Row::json).collect();
        json!({ "perCall": rows }).to_string()
    }

    pub(crate) fn table(&self) -> String {
        let mut table = format!(
            "{:<16} {:>12} {:>12} {:>7} {:>7}   {:>13} {:>11}\n",
            "per call", "bare", "echo-server", "ratio", "budget", "allocations", "writes"
        );
        for row in &self.rows {
            row.write(&mut table);
        }
        table.trim_end().to_owned()
    }
}

impl Row {
    fn write(&self, table: &mut String) {
        let pair = |of: fn(&Cost) -> f64| {
            let product = self
                .product
                .as_ref()
                .map_or("-".into(), |cost| format!("{:.1}", of(cost)));
            format!("{:.1} / {product}", of(&self.limit))
        };
        let product = self
            .product
            .as_ref()
            .map_or("-".into(), |cost| format!("{:.0}", cost.instructions));
        let ratio = self
            .ratio()
            .map_or("-".into(), |ratio| format!("{ratio:.3}"));
        let mark = if self.exceeds_budget() {
            "  over budget"
        } else {
            ""
        };
        let _ = writeln!(
            table,
            "{:<16} {:>12.0} {:>12} {:>7} {:>7}   {:>13} {:>11}{mark}",
            self.scenario.name,
            self.limit.instructions,
            product,
            ratio,
            self.scenario.budget.value(),
            pair(|cost| cost.allocations),
            pair(|cost| cost.writes),
        );
        if let Some(product) = self.product.as_ref().filter(|_| !self.same_answer()) {
            let _ = writeln!(
                table,
                "  the answers differ:\n    {:.300}\n    {:.300}",
                self.limit.answer, product.answer
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    fn cost(instructions: f64, answer: &str) -> Cost {
        Cost {
            instructions,
            allocations: 1.0,
            writes: 1.0,
            answer: answer.to_owned(),
        }
    }

    fn report(scenario: usize, product: Option<Cost>) -> Report {
        let scenario = &SCENARIOS[scenario];
        Report {
            rows: vec![Row {
                scenario,
                limit: cost(100.0, "a"),
                product,
            }],
        }
    }

    #[test]
    fn a_budget_is_exceeded_only_above_it_and_only_where_it_is_judged() {
        assert!(report(0, Some(cost(130.0, "a"))).within_budget());
        assert!(!report(0, Some(cost(131.0, "a"))).within_budget());
        assert!(report(2, Some(cost(300.0, "a"))).within_budget());
        assert!(report(0, None).within_budget());
    }

    #[test]
    fn the_table_shows_answers_that_differ() {
        assert!(!report(0, Some(cost(100.0, "a"))).table().contains("differ"));
        assert!(report(0, Some(cost(100.0, "b"))).table().contains("differ"));
    }
}
