//! The gates: every duty of a side is proven, or stands in `spec/not-proven.csv` with its reason.
//!
//! A duty is a MUST or MUST NOT that a peer can observe. One that binds both sides is two duties, and each side proves its own, in
//! every revision that the requirement names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use crate::coverage::Coverage;
use crate::side::Side;
use crate::table::{self, Requirement};

/// A duty that no test proves, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// The id of the requirement.
    pub id: String,
    /// Whose duty it is; a line may stand for both sides.
    pub sides: Vec<Side>,
    /// The revisions in which it is not proven; none for all that the requirement names.
    pub revisions: Vec<String>,
    /// Why it is not proven.
    pub reason: String,
}

/// Returns the rows of `spec/not-proven.csv`.
pub fn exemptions() -> &'static [Exemption] {
    static LISTED: LazyLock<Vec<Exemption>> =
        LazyLock::new(|| parse(include_str!("../../spec/not-proven.csv")));
    &LISTED
}

/// How the reason of a duty begins that is proven only where foreign data is at hand: proven or not, it may be listed.
const SOMETIMES: &str = "proven only where";

/// What the gate of one side found.
#[derive(Debug)]
pub struct Gate<'a> {
    side: Side,
    /// Duties that are proven in every revision.
    proven: usize,
    /// The duties that each reason explains, with the revisions in which they are not proven.
    listed: BTreeMap<&'a str, Vec<Gap<'a>>>,
    faults: Vec<Fault<'a>>,
}

/// A duty, and the revisions in which it is not proven.
type Gap<'a> = (&'a Requirement, Vec<&'static str>);

/// Why the gate stays shut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault<'a> {
    /// A duty that is neither proven nor listed in these revisions.
    Open(&'a Requirement, Vec<&'static str>),
    /// A listed duty that is proven after all in these revisions.
    Stale(&'a str, Vec<&'static str>),
    /// A listed id that names no duty of the side.
    Unknown(&'a str, Side),
    /// A listed revision that the requirement does not name.
    UnknownRevision(&'a str, &'a str),
    /// An id that is listed twice for a side and a revision.
    Repeated(&'a str, Vec<&'static str>),
}

impl<'a> Gate<'a> {
    /// Holds what is proven for a side against what is listed for it.
    pub fn judge(coverage: &Coverage<'a>, side: Side, exemptions: &'a [Exemption]) -> Self {
        let mut gate = Self {
            side,
            proven: 0,
            listed: BTreeMap::new(),
            faults: Vec::new(),
        };
        let mut duties: BTreeMap<_, _> = coverage
            .duties(side)
            .map(|(row, open)| (row.id, Duty::new(row, open)))
            .collect();
        let duties_proven = duties.values().filter(|duty| duty.open.is_empty());
        gate.proven = duties_proven.count();
        for exemption in exemptions.iter().filter(|row| row.sides.contains(&side)) {
            match duties.get_mut(exemption.id.as_str()) {
                Some(duty) => gate.take(exemption, duty),
                None => gate.faults.push(Fault::Unknown(&exemption.id, side)),
            }
        }
        for duty in duties.into_values() {
            let mut open = duty.open;
            open.retain(|date| !duty.listed.contains(date));
            if !open.is_empty() {
                gate.faults.push(Fault::Open(duty.row, open));
            }
        }
        gate
    }

    /// Holds one line of the list against the duty that it names.
    fn take(&mut self, exemption: &'a Exemption, duty: &mut Duty<'a>) {
        let id = exemption.id.as_str();
        let named = &duty.row.revisions;
        for date in &exemption.revisions {
            if !named.contains(&date.as_str()) {
                self.faults.push(Fault::UnknownRevision(id, date));
            }
        }
        let is_meant = |date: &&'static str| {
            exemption.revisions.is_empty() || exemption.revisions.iter().any(|it| it == date)
        };
        let meant: Vec<_> = named.iter().copied().filter(is_meant).collect();
        let (repeated, meant): (Vec<_>, Vec<_>) = meant
            .into_iter()
            .partition(|date| duty.listed.contains(date));
        duty.listed.extend(&meant);
        let (open, proven): (Vec<_>, Vec<_>) =
            meant.into_iter().partition(|date| duty.open.contains(date));
        if !repeated.is_empty() {
            self.faults.push(Fault::Repeated(id, repeated));
        }
        if !proven.is_empty() && !exemption.reason.starts_with(SOMETIMES) {
            self.faults.push(Fault::Stale(id, proven));
        }
        if !open.is_empty() {
            let listed = self.listed.entry(&exemption.reason).or_default();
            listed.push((duty.row, open));
        }
    }

    /// Returns everything that keeps the gate shut; nothing if it is open.
    pub fn faults(&self) -> &[Fault<'a>] {
        &self.faults
    }

    /// Returns how many duties are listed, and in how many revisions together.
    fn listed_count(&self) -> (usize, usize) {
        let gaps = || self.listed.values().flatten();
        let rows: BTreeSet<_> = gaps().map(|(row, _)| row.id).collect();
        (rows.len(), gaps().map(|(_, dates)| dates.len()).sum())
    }
}

/// A duty while the list is gone through.
struct Duty<'a> {
    row: &'a Requirement,
    /// The revisions in which no test proves it.
    open: Vec<&'static str>,
    /// The revisions in which it is listed.
    listed: Vec<&'static str>,
}

impl<'a> Duty<'a> {
    fn new(row: &'a Requirement, open: Vec<&'static str>) -> Self {
        let listed = Vec::new();
        Self { row, open, listed }
    }
}

impl fmt::Display for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.side;
        for (reason, gaps) in &self.listed {
            writeln!(f, "not proven by the {side}, {}: {reason}", gaps.len())?;
            for (row, open) in gaps {
                writeln!(f, "  {}{}", row.id, in_revisions(row, open))?;
            }
        }
        for fault in &self.faults {
            writeln!(f, "FAULT of the {side}: {fault}")?;
        }
        let (rows, gaps) = self.listed_count();
        writeln!(
            f,
            "duties of a {side} on the wire: {} proven in every revision, {rows} listed with their reason \
             ({gaps} by revision), {} at fault",
            self.proven,
            self.faults.len()
        )
    }
}

/// Says in which revisions, where it is not all that a row names.
fn in_revisions(row: &Requirement, dates: &[&str]) -> String {
    if dates.len() == row.revisions.len() {
        return String::new();
    }
    format!(" in {}", dates.join(" "))
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(row, dates) => write!(
                f,
                "{} ({} {}) has no test that passed{}: {}",
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
                write!(f, "{id} in spec/not-proven.csv names no duty of a {side}")
            }
            Self::UnknownRevision(id, date) => write!(
                f,
                "{id} stands in spec/not-proven.csv for {date}, which the requirement does not name"
            ),
            Self::Repeated(id, dates) => write!(
                f,
                "{id} stands twice in spec/not-proven.csv for {}",
                dates.join(" ")
            ),
        }
    }
}

/// Reads lines of `id,side,revisions,reason`; the heading and lines that begin with `#` are for people.
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
