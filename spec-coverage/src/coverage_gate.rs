//! The gate of each side: every mandatory requirement is proven, or listed in `spec/not-proven.csv` with its reason.
//!
//! A requirement is mandatory if it is a MUST or MUST NOT that a peer can observe. If it binds both sides, each side proves it on its
//! own, in every revision that the requirement names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::LazyLock,
};

use crate::{
    coverage::Coverage,
    side::Side,
    table::{self, Requirement},
};

/// A mandatory requirement without a test, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// The id of the requirement.
    pub id: String,
    /// The sides that the line applies to.
    pub sides: Vec<Side>,
    /// The revisions in which it is not proven; none for all that the requirement names.
    pub revisions: Vec<String>,
    /// The reason.
    pub reason: String,
}

/// Returns the rows of `spec/not-proven.csv`.
pub fn exemptions() -> &'static [Exemption] {
    static LISTED: LazyLock<Vec<Exemption>> =
        LazyLock::new(|| parse(include_str!("../not-proven.csv")));
    &LISTED
}

/// Prefix of the reason of a requirement that needs foreign data for its proof. Such a requirement may be listed even if it is proven.
const DEPENDS_ON_DATA: &str = "proven only where";

/// The result of the gate of one side.
#[derive(Debug)]
pub struct CoverageGate<'a> {
    side: Side,
    /// Mandatory requirements proven in every revision.
    proven: usize,
    /// The unproven requirements by reason, with the revisions in which they are not proven.
    listed: BTreeMap<&'a str, Vec<Gap<'a>>>,
    violations: Vec<GateViolation<'a>>,
}

/// A requirement, and the revisions in which it is not proven.
type Gap<'a> = (&'a Requirement, Vec<&'static str>);

/// A reason for the gate to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateViolation<'a> {
    /// A requirement that is neither proven nor listed in these revisions.
    Open(&'a Requirement, Vec<&'static str>),
    /// A listed requirement that is proven in these revisions.
    Stale(&'a str, Vec<&'static str>),
    /// A listed id that is not a mandatory requirement of the side.
    Unknown(&'a str, Side),
    /// A listed revision that the requirement does not name.
    UnknownRevision(&'a str, &'a str),
    /// An id that is listed twice for a side and a revision.
    Repeated(&'a str, Vec<&'static str>),
}

impl<'a> CoverageGate<'a> {
    /// Compares the proven requirements of a side with the listed ones.
    pub fn evaluate(coverage: &Coverage<'a>, side: Side, exemptions: &'a [Exemption]) -> Self {
        let mut gate = Self {
            side,
            proven: 0,
            listed: BTreeMap::new(),
            violations: Vec::new(),
        };
        let mut mandatory: BTreeMap<_, _> = coverage
            .mandatory(side)
            .map(|(row, open)| (row.id, MandatoryRequirement::new(row, open)))
            .collect();
        let proven = mandatory
            .values()
            .filter(|requirement| requirement.open.is_empty());
        gate.proven = proven.count();
        for exemption in exemptions.iter().filter(|row| row.sides.contains(&side)) {
            match mandatory.get_mut(exemption.id.as_str()) {
                Some(requirement) => gate.apply_exemption(exemption, requirement),
                None => gate
                    .violations
                    .push(GateViolation::Unknown(&exemption.id, side)),
            }
        }
        for requirement in mandatory.into_values() {
            let mut open = requirement.open;
            open.retain(|date| !requirement.listed.contains(date));
            if !open.is_empty() {
                gate.violations
                    .push(GateViolation::Open(requirement.row, open));
            }
        }
        gate
    }

    /// Compares one line of the list with the requirement that it names.
    fn apply_exemption(
        &mut self,
        exemption: &'a Exemption,
        requirement: &mut MandatoryRequirement<'a>,
    ) {
        let id = exemption.id.as_str();
        let named = &requirement.row.revisions;
        for date in &exemption.revisions {
            if !named.contains(&date.as_str()) {
                self.violations
                    .push(GateViolation::UnknownRevision(id, date));
            }
        }
        let is_selected = |date: &&'static str| {
            exemption.revisions.is_empty() || exemption.revisions.iter().any(|it| it == date)
        };
        let selected: Vec<_> = named.iter().copied().filter(is_selected).collect();
        let (repeated, selected): (Vec<_>, Vec<_>) = selected
            .into_iter()
            .partition(|date| requirement.listed.contains(date));
        requirement.listed.extend(&selected);
        let (open, proven): (Vec<_>, Vec<_>) = selected
            .into_iter()
            .partition(|date| requirement.open.contains(date));
        if !repeated.is_empty() {
            self.violations.push(GateViolation::Repeated(id, repeated));
        }
        if !proven.is_empty() && !exemption.reason.starts_with(DEPENDS_ON_DATA) {
            self.violations.push(GateViolation::Stale(id, proven));
        }
        if !open.is_empty() {
            let listed = self.listed.entry(&exemption.reason).or_default();
            listed.push((requirement.row, open));
        }
    }

    /// Returns the violations; empty if the gate passes.
    pub fn violations(&self) -> &[GateViolation<'a>] {
        &self.violations
    }

    /// Returns the number of listed requirements, and the number of their unproven revisions.
    fn listed_count(&self) -> (usize, usize) {
        let gaps = || self.listed.values().flatten();
        let rows: BTreeSet<_> = gaps().map(|(row, _)| row.id).collect();
        (rows.len(), gaps().map(|(_, dates)| dates.len()).sum())
    }
}

/// A mandatory requirement while the list is applied.
struct MandatoryRequirement<'a> {
    row: &'a Requirement,
    /// The revisions in which no test proves it.
    open: Vec<&'static str>,
    /// The revisions in which it is listed.
    listed: Vec<&'static str>,
}

impl<'a> MandatoryRequirement<'a> {
    fn new(row: &'a Requirement, open: Vec<&'static str>) -> Self {
        let listed = Vec::new();
        Self { row, open, listed }
    }
}

impl fmt::Display for CoverageGate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.side;
        for (reason, gaps) in &self.listed {
            writeln!(f, "not proven by the {side}, {}: {reason}", gaps.len())?;
            for (row, open) in gaps {
                writeln!(f, "  {}{}", row.id, in_revisions(row, open))?;
            }
        }
        for violation in &self.violations {
            writeln!(f, "VIOLATION of the {side}: {violation}")?;
        }
        let (rows, gaps) = self.listed_count();
        writeln!(
            f,
            "mandatory requirements of a {side} on the wire: {} proven in every revision, {rows} listed with their reason \
             ({gaps} by revision), {} violations",
            self.proven,
            self.violations.len()
        )
    }
}

/// Returns the revisions as text; empty if they are all that the requirement names.
fn in_revisions(row: &Requirement, dates: &[&str]) -> String {
    if dates.len() == row.revisions.len() {
        return String::new();
    }
    format!(" in {}", dates.join(" "))
}

impl fmt::Display for GateViolation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(row, dates) => write!(
                f,
                "{} ({} {}) lacks a passing test{}: {}",
                row.id,
                row.area,
                row.level,
                in_revisions(row, dates),
                row.summary
            ),
            Self::Stale(id, dates) => write!(
                f,
                "{id} is proven in {}; take it out of spec/not-proven.csv",
                dates.join(" ")
            ),
            Self::Unknown(id, side) => {
                write!(
                    f,
                    "{id} in spec/not-proven.csv is not a mandatory requirement of a {side}"
                )
            }
            Self::UnknownRevision(id, date) => write!(
                f,
                "{id} is listed in spec/not-proven.csv for {date}, which the requirement does not name"
            ),
            Self::Repeated(id, dates) => write!(
                f,
                "{id} is listed twice in spec/not-proven.csv for {}",
                dates.join(" ")
            ),
        }
    }
}

/// Reads lines of `id,side,revisions,reason`; the heading and lines that begin with `#` are skipped.
fn parse(text: &str) -> Vec<Exemption> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        lines.next(),
        Some("id,side,revisions,reason"),
        "the heading of the list"
    );
    lines
        .map(|line| match &table::fields(line)[..] {
            [id, side, revisions, reason] if !reason.is_empty() => Exemption {
                id: id.to_string(),
                sides: sides(side),
                revisions: revisions.split_whitespace().map(str::to_owned).collect(),
                reason: reason.to_string(),
            },
            _ => panic!("a row is an id, a side, revisions and a reason: {line}"),
        })
        .collect()
}

fn sides(word: &str) -> Vec<Side> {
    match word {
        "server" => vec![Side::Server],
        "client" => vec![Side::Client],
        "both" => Side::ALL.to_vec(),
        _ => panic!("a side is `server`, `client` or `both`: {word}"),
    }
}

#[cfg(test)]
mod tests;
