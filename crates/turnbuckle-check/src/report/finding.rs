//! What is broken: the same thing in several revisions is one finding.

use turnbuckle_protocol::revision::Revision;

use super::{Grade, Report, Ruling, Run, Shown, Verdict};
use crate::rule::{Level, Rule};

/// Something that is broken, wherever it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding<'a> {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// How much that matters.
    pub level: Level,
    /// What was seen instead of what is right, in the newest revision that shows it.
    pub what: &'a str,
    /// The exchange that shows it, in the same revision.
    pub exchange: &'a [Shown],
    /// Where it is broken, oldest revision first.
    pub places: Vec<Place>,
    /// Whether it is known to be broken, and counts no more.
    pub known: bool,
}

/// A revision on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The revision.
    pub revision: Revision,
    /// The transport.
    pub transport: &'static str,
}

impl Report {
    /// Returns what is broken: what matters most first, then in the order of the catalogue.
    pub fn findings(&self) -> Vec<Finding<'_>> {
        let mut findings: Vec<(String, Finding<'_>)> = Vec::new();
        for (run, ruling) in self.rulings() {
            let Some((key, new)) = Finding::of(run, ruling) else {
                continue;
            };
            let same = |(other, old): &&mut (String, Finding<'_>)| {
                *other == key && old.level == new.level && old.known == new.known
            };
            match findings.iter_mut().find(same) {
                Some((_, old)) => old.join(new),
                None => findings.push((key, new)),
            }
        }
        let mut findings: Vec<_> = findings.into_iter().map(|(_, finding)| finding).collect();
        findings.sort_by_key(|finding| {
            let position = crate::catalogue::position(finding.rule);
            (finding.known, std::cmp::Reverse(finding.level), position)
        });
        findings
    }
}

impl<'a> Finding<'a> {
    /// Makes a finding of a ruling; what it says is the same in two revisions if only their dates differ.
    fn of(run: &Run, ruling: &'a Ruling) -> Option<(String, Self)> {
        let Verdict::Broken { what, exchange } = &ruling.verdict else {
            return None;
        };
        let key = what.replace(run.revision.as_str(), "DATE");
        let finding = Self {
            rule: ruling.rule,
            level: ruling.level,
            what,
            exchange,
            places: vec![Place {
                revision: run.revision,
                transport: run.transport,
            }],
            known: ruling.known,
        };
        Some((format!("{} {key}", ruling.rule.id), finding))
    }

    fn join(&mut self, other: Self) {
        if self.newest() < other.newest() {
            (self.what, self.exchange) = (other.what, other.exchange);
        }
        self.places.extend(other.places);
        self.places.sort_by_key(|place| place.revision);
    }

    fn newest(&self) -> Option<Revision> {
        self.places.iter().map(|place| place.revision).max()
    }

    /// Returns what it comes down to.
    pub fn grade(&self) -> Grade {
        match self.level {
            Level::Fail => Grade::Fail,
            Level::Warn => Grade::Warn,
            Level::Advice => Grade::Advice,
        }
    }

    /// Returns the rows of the ledger that are broken, with the pages that they come from.
    pub fn rows(&self) -> Vec<&'static turnbuckle_ledger::Requirement> {
        let revision = self.newest();
        let rows = revision.map(|revision| self.rule.rows_in(revision));
        rows.into_iter().flatten().collect()
    }
}
