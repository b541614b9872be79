//! The compliance checklist, line by line: which rules judge a line, or why a line cannot be seen from outside.
//!
//! The ledger (`spec/requirements.csv`) says which requirements a line stands for. A rule judges a line if it judges one of
//! them. The table here adds rules that judge how a permission is used, and reasons.

mod notes;

use turnbuckle_ledger::{Requirement, table};

use crate::catalogue;
use crate::report::{Grade, Report};
use crate::rule::{Role, Rule};

use self::notes::NOTES;

/// A line of the compliance checklist.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Line {
    /// Section and line: `2.2.1/7`.
    pub id: &'static str,
    /// The requirements that it stands for.
    pub requirements: Vec<&'static Requirement>,
    /// The rules that judge it, those for servers first.
    pub rules: Vec<&'static Rule>,
    /// Why it cannot be seen from outside, or not all of it.
    pub reason: Option<&'static str>,
}

/// What the table adds to a line.
struct Note {
    line: &'static str,
    /// Rules that judge the line although they judge none of its requirements.
    rules: &'static [&'static str],
    /// Why it cannot be seen from outside; empty if it can.
    reason: &'static str,
}

/// Returns all lines, in the order of the checklist.
pub fn lines() -> Vec<Line> {
    let mut ids: Vec<&'static str> = Vec::new();
    for id in table::all().iter().flat_map(|row| &row.checklist) {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    ids.sort_by_key(|id| numbers(id));
    ids.into_iter().map(Line::new).collect()
}

impl Line {
    fn new(id: &'static str) -> Self {
        let rows = table::all().iter();
        let requirements: Vec<_> = rows.filter(|row| row.checklist.contains(&id)).collect();
        let note = NOTES.iter().find(|note| note.line == id);
        let judges = |rule: &&'static Rule| {
            rule.rows
                .iter()
                .any(|row| requirements.iter().any(|own| own.id == *row))
                || note.is_some_and(|note| note.rules.contains(&rule.id))
        };
        Self {
            id,
            rules: catalogue::all().filter(judges).collect(),
            reason: note
                .map(|note| note.reason)
                .filter(|reason| !reason.is_empty()),
            requirements,
        }
    }

    /// Returns what the line asks for: the summaries of its requirements.
    pub fn text(&self) -> String {
        let summaries: Vec<_> = self
            .requirements
            .iter()
            .map(|row| row.summary.as_ref())
            .collect();
        summaries.join(" ")
    }

    /// Returns the rules for servers, or for clients.
    pub fn rules_for(&self, role: Role) -> impl Iterator<Item = &'static Rule> {
        self.rules
            .iter()
            .copied()
            .filter(move |rule| rule.role == role)
    }

    /// Returns what a report says about it, in all revisions together: what is broken outweighs what is kept, and that
    /// what could not be told. Nothing if the report has none of its rules.
    pub fn grade(&self, report: &Report) -> Option<Grade> {
        let ours = |id: &str| self.rules.iter().any(|rule| rule.id == id);
        let rulings = report.rulings().filter(|(_, ruling)| ours(ruling.rule.id));
        rulings
            .map(|(_, ruling)| ruling.grade())
            .min_by_key(|grade| weight(*grade))
    }
}

/// Returns how far a grade stands back behind others.
fn weight(grade: Grade) -> usize {
    match grade {
        Grade::Fail => 0,
        Grade::Warn => 1,
        Grade::Advice => 2,
        Grade::Pass => 3,
        Grade::NotTested => 4,
        Grade::NotApplicable => 5,
    }
}

/// Returns the numbers of which the id of a line consists, for sorting.
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
    use super::*;
    use crate::report::{Ruling, Run, Verdict};
    use turnbuckle_protocol::revision::Revision;

    #[test]
    fn every_line_has_rules_or_a_reason() {
        let lines = lines();

        assert_eq!(lines.len(), 133);
        let bare = lines
            .iter()
            .filter(|line| line.rules.is_empty() && line.reason.is_none());
        let bare: Vec<_> = bare.map(|line| line.id).collect();
        assert!(bare.is_empty(), "{bare:?}");
    }

    #[test]
    fn lines_come_in_the_order_of_the_checklist() {
        let lines = lines();
        let ids: Vec<_> = lines.iter().map(|line| line.id).collect();

        assert_eq!(ids.first(), Some(&"1/0"));
        let place = |id: &str| ids.iter().position(|other| *other == id);
        assert!(place("2.2/4") < place("2.2.1/1"));
        assert!(place("2.2.5/9") < place("2.3/1"));
    }

    #[test]
    fn every_note_is_about_a_line_and_names_rules_that_exist() {
        let lines = lines();
        for note in NOTES {
            let line = lines.iter().find(|line| line.id == note.line);
            let line = line.unwrap_or_else(|| panic!("there is no line {}", note.line));
            for id in note.rules {
                let rule = catalogue::find(id).unwrap_or_else(|| panic!("there is no rule {id}"));
                let listed = |row: &str| line.requirements.iter().any(|own| own.id == row);
                assert!(
                    !rule.rows.iter().any(|row| listed(row)),
                    "{id} judges {} anyway",
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
    fn what_is_broken_in_one_revision_outweighs_what_is_kept_in_another() {
        let line = lines()
            .into_iter()
            .find(|line| line.id == "1.3/1")
            .expect("it is there");
        let rule = line.rules[0];
        let mut report = Report::new(Role::Server, "server");
        let ruled = |revision, verdict| {
            let mut run = Run::new(revision, "stdio");
            run.rulings.push(Ruling::new(rule, revision, verdict));
            run
        };
        assert_eq!(line.grade(&report), None);

        report.runs.push(ruled(
            Revision::V2025_06_18,
            Verdict::NotTested(String::new()),
        ));
        assert_eq!(line.grade(&report), Some(Grade::NotTested));
        report
            .runs
            .push(ruled(Revision::V2025_11_25, Verdict::Kept(Vec::new())));
        assert_eq!(line.grade(&report), Some(Grade::Pass));
        let broken = Verdict::Broken {
            what: String::new(),
            exchange: Vec::new(),
        };
        report.runs.push(ruled(Revision::V2026_07_28, broken));
        assert_eq!(line.grade(&report), Some(Grade::Fail));
    }
}
