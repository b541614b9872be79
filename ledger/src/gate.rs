//! The gates: every duty of a side is proven, or stands in `spec/not-proven.csv` with its reason.
//!
//! A duty is a MUST or MUST NOT that a peer can observe. One that binds both sides is two duties, and each side proves its own.

use std::collections::BTreeMap;
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
    proven: usize,
    listed: BTreeMap<&'a str, Vec<&'a Requirement>>,
    faults: Vec<Fault<'a>>,
}

/// Why the gate stays shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault<'a> {
    /// A duty that is neither proven nor listed.
    Open(&'a Requirement),
    /// A listed duty that is proven after all.
    Stale(&'a str),
    /// A listed id that names no duty of the side.
    Unknown(&'a str, Side),
    /// An id that is listed twice for a side.
    Repeated(&'a str),
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
        let mut open = BTreeMap::new();
        let mut closed = Vec::new();
        for (row, proven) in coverage.duties(side) {
            if proven {
                closed.push(row.id);
            } else {
                open.insert(row.id, row);
            }
        }
        gate.proven = closed.len();
        let mut seen = Vec::new();
        let exemptions = exemptions.iter().filter(|row| row.sides.contains(&side));
        for Exemption { id, reason, .. } in exemptions {
            if seen.contains(&id) {
                gate.faults.push(Fault::Repeated(id));
            } else if let Some(row) = open.remove(id.as_str()) {
                gate.listed.entry(reason).or_default().push(row);
            } else if closed.contains(&id.as_str()) && !reason.starts_with(SOMETIMES) {
                gate.faults.push(Fault::Stale(id));
            } else if !closed.contains(&id.as_str()) {
                gate.faults.push(Fault::Unknown(id, side));
            }
            seen.push(id);
        }
        gate.faults.extend(open.into_values().map(Fault::Open));
        gate
    }

    /// Returns everything that keeps the gate shut; nothing if it is open.
    pub fn faults(&self) -> &[Fault<'a>] {
        &self.faults
    }

    fn listed_count(&self) -> usize {
        self.listed.values().map(Vec::len).sum()
    }
}

impl fmt::Display for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.side;
        for (reason, rows) in &self.listed {
            writeln!(f, "not proven by the {side}, {}: {reason}", rows.len())?;
            for row in rows {
                writeln!(f, "  {}", row.id)?;
            }
        }
        for fault in &self.faults {
            writeln!(f, "FAULT of the {side}: {fault}")?;
        }
        writeln!(
            f,
            "duties of a {side} on the wire: {} proven, {} listed with their reason, {} at fault",
            self.proven,
            self.listed_count(),
            self.faults.len()
        )
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(row) => write!(
                f,
                "{} ({} {}) has no test that passed: {}",
                row.id, row.area, row.level, row.summary
            ),
            Self::Stale(id) => write!(f, "{id} is proven; take it out of spec/not-proven.csv"),
            Self::Unknown(id, side) => {
                write!(f, "{id} in spec/not-proven.csv names no duty of a {side}")
            }
            Self::Repeated(id) => write!(f, "{id} stands twice in spec/not-proven.csv"),
        }
    }
}

/// Reads lines of `id,side,reason`; the heading and lines that begin with `#` are for people.
fn parse(text: &str) -> Vec<Exemption> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        lines.next(),
        Some("id,side,reason"),
        "the heading of the list"
    );
    lines
        .map(|line| match &table::fields(line)[..] {
            [id, side, reason] if !reason.is_empty() => Exemption {
                id: id.to_string(),
                sides: sides(side),
                reason: reason.to_string(),
            },
            _ => panic!("a row is an id, a side and a reason: {line}"),
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
