//! Counts the requirements that are claimed by a passing test.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::{self, Write},
};

use crate::{
    claim::{Claim, Claims},
    report::TestName,
    side::{self, Side},
    table::Requirement,
};

/// The proven and unproven requirements among those that a peer can observe.
#[derive(Debug)]
pub struct Coverage<'a> {
    rows: Vec<RequirementCoverage<'a>>,
    failing: Vec<(String, TestName)>,
    unknown: Vec<(String, TestName)>,
}

#[derive(Debug)]
struct RequirementCoverage<'a> {
    requirement: &'a Requirement,
    /// For each side, bound or not, the revisions in which a test proves it.
    proven: [Vec<&'static str>; 2],
}

impl RequirementCoverage<'_> {
    /// Returns the sides that the requirement binds.
    fn bound(&self) -> impl Iterator<Item = Side> {
        let sides = Side::ALL.into_iter();
        sides.filter(|side| side.is_bound_by(self.requirement))
    }

    /// Returns the revisions in which a side lacks a proof.
    fn open(&self, side: Side) -> Vec<&'static str> {
        let mut open = self.requirement.revisions.clone();
        open.retain(|date| !self.proven[side as usize].contains(date));
        open
    }

    /// Returns the bound sides that lack a proof, with the revisions.
    fn unproven(&self) -> impl Iterator<Item = (Side, Vec<&'static str>)> {
        let sides = self.bound().map(|side| (side, self.open(side)));
        sides.filter(|(_, open)| !open.is_empty())
    }

    /// Returns whether every bound side has a proof in every revision. Requirements for authorization servers never count as proven.
    fn covered(&self) -> bool {
        self.requirement.role != "as" && self.unproven().next().is_none()
    }
}

impl<'a> Coverage<'a> {
    /// Combines the requirements with the claims and the tests that passed.
    pub fn new(table: &'a [Requirement], claims: &Claims, passed: &HashSet<TestName>) -> Self {
        let rows = table
            .iter()
            .filter(|row| row.is_on_the_wire())
            .map(|requirement| RequirementCoverage {
                requirement,
                proven: Side::ALL.map(|side| proven(requirement, side, claims, passed)),
            })
            .collect();
        Self {
            rows,
            failing: claims_where(claims, |test| !passed.contains(test)),
            unknown: claims_where(claims, |test| side::sides_of(test).is_none()),
        }
    }

    /// Returns the requirements that are not proven, in the order of the table, and the sides and revisions without a proof.
    pub fn missing(
        &self,
    ) -> impl Iterator<Item = (&'a Requirement, Vec<(Side, Vec<&'static str>)>)> {
        self.rows
            .iter()
            .filter(|row| !row.covered())
            .map(|row| (row.requirement, row.unproven().collect()))
    }

    /// Returns every MUST and MUST NOT that binds a side, and the revisions in which no test proves it for that side.
    pub fn mandatory(
        &self,
        side: Side,
    ) -> impl Iterator<Item = (&'a Requirement, Vec<&'static str>)> {
        self.rows
            .iter()
            .filter(move |row| side.is_bound_by(row.requirement))
            .filter(|row| row.requirement.level.starts_with("MUST"))
            .map(move |row| (row.requirement, row.open(side)))
    }

    /// Returns how many proofs there are, and how many it would take: one for each row, side it binds and revision it names.
    pub fn proofs(&self) -> (usize, usize) {
        let mut proofs = (0, 0);
        for row in &self.rows {
            for side in row.bound() {
                let total = row.requirement.revisions.len();
                proofs.0 += total - row.open(side).len();
                proofs.1 += total;
            }
        }
        proofs
    }

    /// Returns the requirements that bind authorization servers only.
    pub fn out_of_role(&self) -> impl Iterator<Item = &'a Requirement> {
        let rows = self.rows.iter().map(|row| row.requirement);
        rows.filter(|row| row.role == "as")
    }

    /// Returns the claims of tests that did not run or did not pass; they do not count.
    pub fn failing(&self) -> &[(String, TestName)] {
        &self.failing
    }

    /// Returns the claims of tests with a package that is not in the table of [`side`]; they do not count.
    pub fn unknown(&self) -> &[(String, TestName)] {
        &self.unknown
    }

    /// Returns the figures as one JSON object.
    pub fn to_json(&self) -> String {
        // A test of the table checks that keys contain only letters, so nothing needs escaping.
        let (proofs, total) = self.proofs();
        let mut json = format!(
            "{{\"total\":{},\"proofs\":{{\"covered\":{proofs},\"total\":{total}}}",
            self.total().to_json()
        );
        for (name, groups) in self.groups() {
            let groups: Vec<_> = groups
                .iter()
                .map(|(key, share)| format!("\"{key}\":{}", share.to_json()))
                .collect();
            write!(json, ",\"{name}\":{{{}}}", groups.join(","))
                .expect("writing to a string does not fail");
        }
        json.push('}');
        json
    }

    fn total(&self) -> CoveredCount {
        self.rows
            .iter()
            .fold(CoveredCount::default(), CoveredCount::with)
    }

    fn groups(&self) -> [(&'static str, BTreeMap<&'a str, CoveredCount>); 3] {
        [
            ("area", self.grouped(|row| row.area)),
            ("level", self.grouped(|row| row.level)),
            ("role", self.grouped(|row| row.role)),
        ]
    }

    fn grouped(&self, key: fn(&Requirement) -> &str) -> BTreeMap<&'a str, CoveredCount> {
        let mut groups = BTreeMap::<_, CoveredCount>::new();
        for row in &self.rows {
            let share = groups.entry(key(row.requirement)).or_default();
            *share = share.with(row);
        }
        groups
    }
}

impl fmt::Display for Coverage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, groups) in self.groups() {
            writeln!(f, "by {name}")?;
            for (key, share) in groups {
                writeln!(f, "  {key:<16}{share}")?;
            }
        }
        writeln!(
            f,
            "requirements proven on the wire: {}",
            self.total().to_string().trim_start()
        )?;
        let (proofs, total) = self.proofs();
        writeln!(
            f,
            "proofs, one for each requirement, side and revision: {proofs} of {total}"
        )
    }
}

/// The number of covered requirements of a group.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct CoveredCount {
    covered: usize,
    total: usize,
}

impl CoveredCount {
    fn with(self, row: &RequirementCoverage<'_>) -> Self {
        Self {
            covered: self.covered + usize::from(row.covered()),
            total: self.total + 1,
        }
    }

    fn to_json(self) -> String {
        format!("{{\"covered\":{},\"total\":{}}}", self.covered, self.total)
    }
}

impl fmt::Display for CoveredCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (100 * self.covered).checked_div(self.total).unwrap_or(100);
        write!(f, "{:>4} of {:<4} {percent:>3} %", self.covered, self.total)
    }
}

/// Returns the revisions of a row in which a test that passed proves it for a side.
fn proven(
    row: &Requirement,
    side: Side,
    claims: &Claims,
    passed: &HashSet<TestName>,
) -> Vec<&'static str> {
    let counts = |claim: &Claim, date| {
        passed.contains(&claim.test)
            && side.is_tested_by(&claim.test)
            && (side::is_revision_independent(&claim.test) || claims.is_made_in(claim, date))
    };
    let mut proven = row.revisions.clone();
    proven.retain(|date| {
        claims
            .for_requirement(row.id)
            .iter()
            .any(|claim| counts(claim, date))
    });
    proven
}

/// Returns the claims of the tests that match, each once.
fn claims_where(claims: &Claims, matches: impl Fn(&TestName) -> bool) -> Vec<(String, TestName)> {
    let mut listed: Vec<_> = claims
        .iter()
        .filter(|(_, claim)| matches(&claim.test))
        .map(|(id, claim)| (id.to_owned(), claim.test.clone()))
        .collect();
    listed.sort();
    listed.dedup();
    listed
}

#[cfg(test)]
mod tests;
