//! The figures: how many requirements have a test that claims them and passed.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Write};

use crate::claim::Claims;
use crate::report::TestName;
use crate::side::Side;
use crate::table::Requirement;

/// What is proven of the requirements that a peer can observe.
#[derive(Debug)]
pub struct Coverage<'a> {
    rows: Vec<Row<'a>>,
    failing: Vec<(String, TestName)>,
}

#[derive(Debug)]
struct Row<'a> {
    requirement: &'a Requirement,
    /// The sides for which a test proves it, bound or not.
    proven_for: Vec<Side>,
}

impl Row<'_> {
    /// Returns the sides that it binds and that have no proof.
    fn lacking(&self) -> impl Iterator<Item = Side> {
        Side::ALL
            .into_iter()
            .filter(|side| side.is_bound_by(self.requirement))
            .filter(|side| !self.proven_for.contains(side))
    }

    /// Returns whether every side that it binds has a proof; what binds none of ours is never proven.
    fn covered(&self) -> bool {
        self.requirement.role != "as" && self.lacking().next().is_none()
    }
}

impl<'a> Coverage<'a> {
    /// Joins the table with what tests claimed and which of them passed.
    pub fn of(table: &'a [Requirement], claims: &Claims, passed: &HashSet<TestName>) -> Self {
        let proven = |id: &str, side: Side| {
            let mut tests = claims.get(id).into_iter().flatten();
            tests.any(|test| side.is_tested_by(test) && passed.contains(test))
        };
        let proven_for = |id| {
            let sides = Side::ALL.into_iter();
            sides.filter(|side| proven(id, *side)).collect()
        };
        let rows = table
            .iter()
            .filter(|row| row.is_on_the_wire())
            .map(|requirement| Row {
                requirement,
                proven_for: proven_for(requirement.id),
            })
            .collect();
        Self {
            rows,
            failing: failing(claims, passed),
        }
    }

    /// Returns the requirements that are not proven, in the order of the table, and the sides whose proof is missing.
    pub fn missing(&self) -> impl Iterator<Item = (&'a Requirement, Vec<Side>)> {
        self.rows
            .iter()
            .filter(|row| !row.covered())
            .map(|row| (row.requirement, row.lacking().collect()))
    }

    /// Returns every MUST and MUST NOT that binds a side, and whether a test proves it for that side.
    pub fn duties(&self, side: Side) -> impl Iterator<Item = (&'a Requirement, bool)> {
        self.rows
            .iter()
            .filter(move |row| side.is_bound_by(row.requirement))
            .filter(|row| row.requirement.level.starts_with("MUST"))
            .map(move |row| (row.requirement, row.proven_for.contains(&side)))
    }

    /// Returns the requirements that bind authorization servers, which we are not.
    pub fn out_of_role(&self) -> impl Iterator<Item = &'a Requirement> {
        let rows = self.rows.iter().map(|row| row.requirement);
        rows.filter(|row| row.role == "as")
    }

    /// Returns claims that do not count because their test did not run or did not pass.
    pub fn failing(&self) -> &[(String, TestName)] {
        &self.failing
    }

    /// Returns the figures as one JSON object.
    pub fn to_json(&self) -> String {
        // Keys are plain words, as the table's own test makes sure, so nothing needs escaping.
        let mut json = format!("{{\"total\":{}", self.total().to_json());
        for (name, groups) in self.groups() {
            let groups: Vec<_> = groups
                .iter()
                .map(|(key, share)| format!("\"{key}\":{}", share.to_json()))
                .collect();
            write!(json, ",\"{name}\":{{{}}}", groups.join(","))
                .expect("a string takes all that is written");
        }
        json.push('}');
        json
    }

    fn total(&self) -> Share {
        self.rows.iter().fold(Share::default(), Share::with)
    }

    fn groups(&self) -> [(&'static str, BTreeMap<&'a str, Share>); 3] {
        [
            ("area", self.grouped(|row| row.area)),
            ("level", self.grouped(|row| row.level)),
            ("role", self.grouped(|row| row.role)),
        ]
    }

    fn grouped(&self, key: fn(&Requirement) -> &str) -> BTreeMap<&'a str, Share> {
        let mut groups = BTreeMap::<_, Share>::new();
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
        )
    }
}

/// How many of a group are covered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Share {
    covered: usize,
    total: usize,
}

impl Share {
    fn with(self, row: &Row<'_>) -> Self {
        Self {
            covered: self.covered + usize::from(row.covered()),
            total: self.total + 1,
        }
    }

    fn to_json(self) -> String {
        format!("{{\"covered\":{},\"total\":{}}}", self.covered, self.total)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (100 * self.covered).checked_div(self.total).unwrap_or(100);
        write!(f, "{:>4} of {:<4} {percent:>3} %", self.covered, self.total)
    }
}

fn failing(claims: &Claims, passed: &HashSet<TestName>) -> Vec<(String, TestName)> {
    let mut failing: Vec<_> = claims
        .iter()
        .flat_map(|(id, tests)| tests.iter().map(move |test| (id.clone(), test.clone())))
        .filter(|(_, test)| !passed.contains(test))
        .collect();
    failing.sort();
    failing.dedup();
    failing
}

#[cfg(test)]
mod tests;
