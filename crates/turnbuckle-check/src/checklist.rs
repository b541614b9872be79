//! The compliance checklist: the rules that cover each line, or the reason why it cannot be observed.
//!
//! `spec/requirements.csv` maps requirements to lines. A rule covers a line if it covers one of its requirements. The
//! notes add rules that test how an optional feature is used, and reasons.

mod markdown;
mod notes;

use turnbuckle_spec_coverage::{Requirement, table};

pub use self::markdown::{lines_markdown, rules_markdown, uncovered_requirements};
use self::notes::NOTES;
use crate::{
    catalog,
    report::{Report, RuleStatus},
    rule::{Role, Rule},
};

/// A line of the compliance checklist.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChecklistLine {
    /// The section and line, such as `2.2.1/7`.
    pub id: &'static str,
    /// The requirements of the line.
    pub requirements: Vec<&'static Requirement>,
    /// The rules that cover it, server rules first.
    pub rules: Vec<&'static Rule>,
    /// The reason why it cannot be observed, or only in part.
    pub reason: Option<&'static str>,
}

/// Additions to a line.
struct LineNote {
    line: &'static str,
    /// Rules that cover the line without covering one of its requirements.
    rules: &'static [&'static str],
    /// The reason why the line cannot be observed; empty if it can.
    reason: &'static str,
}

/// Returns all lines, in checklist order.
pub fn lines() -> Vec<ChecklistLine> {
    let mut ids: Vec<&'static str> = Vec::new();
    for id in table::all().iter().flat_map(|row| &row.checklist) {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    ids.sort_by_key(|id| numbers(id));
    ids.into_iter().map(ChecklistLine::new).collect()
}

impl ChecklistLine {
    fn new(id: &'static str) -> Self {
        let rows = table::all().iter();
        let requirements: Vec<_> = rows.filter(|row| row.checklist.contains(&id)).collect();
        let note = NOTES.iter().find(|note| note.line == id);
        let covers = |rule: &&'static Rule| {
            rule.requirement_ids
                .iter()
                .any(|row| requirements.iter().any(|own| own.id == *row))
                || note.is_some_and(|note| note.rules.contains(&rule.id))
        };
        Self {
            id,
            rules: catalog::all().filter(covers).collect(),
            reason: note
                .map(|note| note.reason)
                .filter(|reason| !reason.is_empty()),
            requirements,
        }
    }

    /// Returns the summaries of the requirements.
    pub fn text(&self) -> String {
        let summaries: Vec<_> = self
            .requirements
            .iter()
            .map(|row| row.summary.as_ref())
            .collect();
        summaries.join(" ")
    }

    /// Returns the rules for one side.
    pub fn rules_for(&self, role: Role) -> impl Iterator<Item = &'static Rule> {
        self.rules
            .iter()
            .copied()
            .filter(move |rule| rule.role == role)
    }

    /// Returns the status of the line over all revisions: a violation outweighs a pass, and a pass
    /// outweighs rules that were not tested. `None` if the report has none of the rules.
    pub fn status(&self, report: &Report) -> Option<RuleStatus> {
        let is_of_line = |id: &str| self.rules.iter().any(|rule| rule.id == id);
        let results = report
            .results()
            .filter(|(_, result)| is_of_line(result.rule.id));
        results
            .map(|(_, result)| result.status())
            .min_by_key(|status| weight(*status))
    }
}

/// Returns the precedence of a status; the lowest wins.
fn weight(status: RuleStatus) -> usize {
    match status {
        RuleStatus::Fail => 0,
        RuleStatus::Warn => 1,
        RuleStatus::Advice => 2,
        RuleStatus::Pass => 3,
        RuleStatus::NotTested => 4,
        RuleStatus::NotApplicable => 5,
    }
}

/// Returns the numbers in a line id, for sorting.
fn numbers(id: &str) -> Vec<u32> {
    let (section, line) = id.split_once('/').unwrap_or((id, "0"));
    let section = section
        .split('.')
        .map(|part| part.parse().unwrap_or(u32::MAX));
    // The lines of a section come before its subsections.
    let line = line.parse().unwrap_or(u32::MAX);
    let mut numbers: Vec<u32> = section.collect();
    numbers.extend([0, line]);
    numbers
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::revision::Revision;

    use super::*;
    use crate::report::{RuleOutcome, RuleResult, RunReport};

    #[test]
    fn every_line_has_rules_or_a_reason() {
        let lines = lines();

        assert_eq!(lines.len(), 133);
        let uncovered = lines
            .iter()
            .filter(|line| line.rules.is_empty() && line.reason.is_none());
        let uncovered: Vec<_> = uncovered.map(|line| line.id).collect();
        assert!(uncovered.is_empty(), "{uncovered:?}");
    }

    #[test]
    fn lines_are_in_checklist_order() {
        let lines = lines();
        let ids: Vec<_> = lines.iter().map(|line| line.id).collect();

        assert_eq!(ids.first(), Some(&"1/0"));
        let position = |id: &str| ids.iter().position(|other| *other == id);
        assert!(position("2.2/4") < position("2.2.1/1"));
        assert!(position("2.2.5/9") < position("2.3/1"));
    }

    #[test]
    fn notes_have_known_lines_and_rules() {
        let lines = lines();
        for note in NOTES {
            let line = lines.iter().find(|line| line.id == note.line);
            let line = line.unwrap_or_else(|| panic!("unknown line {}", note.line));
            for id in note.rules {
                let rule = catalog::find(id).unwrap_or_else(|| panic!("unknown rule {id}"));
                let listed = |row: &str| line.requirements.iter().any(|own| own.id == row);
                assert!(
                    !rule.requirement_ids.iter().any(|row| listed(row)),
                    "{id} already covers {}",
                    line.id
                );
            }
            assert!(
                note.reason.is_empty() || note.reason.ends_with('.'),
                "{}",
                note.line
            );
        }
    }

    #[test]
    fn violation_in_one_revision_outweighs_a_pass_in_another() {
        let line = lines()
            .into_iter()
            .find(|line| line.id == "1.3/1")
            .expect("the line exists");
        let rule = line.rules[0];
        let mut report = Report::new(Role::Server, "server");
        let run_with = |revision, outcome| {
            let mut run = RunReport::new(revision, "stdio");
            run.results.push(RuleResult::new(rule, revision, outcome));
            run
        };
        assert_eq!(line.status(&report), None);

        report.runs.push(run_with(
            Revision::V2025_06_18,
            RuleOutcome::NotTested(String::new()),
        ));
        assert_eq!(line.status(&report), Some(RuleStatus::NotTested));
        report.runs.push(run_with(
            Revision::V2025_11_25,
            RuleOutcome::Passed(Vec::new()),
        ));
        assert_eq!(line.status(&report), Some(RuleStatus::Pass));
        let violated = RuleOutcome::Violated {
            observed: String::new(),
            evidence: Vec::new(),
            requirement: None,
        };
        report.runs.push(run_with(Revision::V2026_07_28, violated));
        assert_eq!(line.status(&report), Some(RuleStatus::Fail));
    }
}
