//! Results by area and run, and reasons for rules without a result.

use super::{Report, RuleOutcome, RuleStatus, RunReport};
use crate::rule::Area;

/// The results of an area.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AreaRow {
    /// The area.
    pub area: Area,
    /// The counts per run.
    pub cells: Vec<StatusCounts>,
}

/// The number of results per status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts([usize; RuleStatus::ALL.len()]);

impl Report {
    /// Returns a row for each area with results.
    pub fn matrix(&self) -> Vec<AreaRow> {
        let row = |&area: &Area| AreaRow {
            area,
            cells: self
                .runs
                .iter()
                .map(|run| StatusCounts::for_area(run, area))
                .collect(),
        };
        let rows = Area::ALL.iter().map(row);
        rows.filter(|row| {
            row.cells
                .iter()
                .any(|cell| *cell != StatusCounts::default())
        })
        .collect()
    }
}

impl StatusCounts {
    fn for_area(run: &RunReport, area: Area) -> Self {
        let mut counts = Self::default();
        for result in run.results.iter().filter(|result| result.rule.area == area) {
            counts.0[result.status() as usize] += 1;
        }
        counts
    }

    /// Returns the number of results with a status.
    pub fn count(&self, status: RuleStatus) -> usize {
        self.0[status as usize]
    }

    /// Returns the counts to show in a cell: violations, passed and not tested; not applicable only
    /// if nothing else is there.
    pub fn summary(&self) -> Vec<(RuleStatus, usize)> {
        const ORDER: [RuleStatus; 5] = [
            RuleStatus::Fail,
            RuleStatus::Warn,
            RuleStatus::Advice,
            RuleStatus::Pass,
            RuleStatus::NotTested,
        ];
        let counted = |status: RuleStatus| (status, self.count(status));
        let mut counts: Vec<_> = ORDER.into_iter().map(counted).collect();
        counts.retain(|(_, count)| *count > 0);
        if counts.is_empty() {
            counts.push(counted(RuleStatus::NotApplicable));
            counts.retain(|(_, count)| *count > 0);
        }
        counts
    }

    /// Returns the most severe status.
    pub fn worst(&self) -> Option<RuleStatus> {
        self.summary().first().map(|(status, _)| *status)
    }
}

/// A reason that applies to several rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StatusReason<'a> {
    /// The reason.
    pub why: &'a str,
    /// The rules, in catalog order.
    pub rules: Vec<&'static str>,
}

impl Report {
    /// Returns the reasons why rules have this status, the most frequent first.
    pub fn reasons_for(&self, status: RuleStatus) -> Vec<StatusReason<'_>> {
        let mut reasons: Vec<StatusReason<'_>> = Vec::new();
        for (_, result) in self
            .results()
            .filter(|(_, result)| result.status() == status)
        {
            let (RuleOutcome::NotApplicable(why) | RuleOutcome::NotTested(why)) = &result.outcome
            else {
                continue;
            };
            let id = result.rule.id;
            match reasons.iter_mut().find(|reason| reason.why == why) {
                Some(reason) if reason.rules.contains(&id) => {}
                Some(reason) => reason.rules.push(id),
                None => reasons.push(StatusReason {
                    why,
                    rules: vec![id],
                }),
            }
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.rules.len()));
        reasons
    }
}
