//! Findings: one per violation, merged over revisions.

use turnbuckle_protocol::revision::Revision;

use super::{EvidenceExcerpt, Report, RuleOutcome, RuleResult, RuleStatus, RunReport};
use crate::rule::{RequirementLevel, Rule};

/// A violation, with all revisions and transports where it occurs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleFinding<'a> {
    /// The violated rule.
    pub rule: &'static Rule,
    /// The level.
    pub level: RequirementLevel,
    /// The observed behavior, in the newest affected revision.
    pub observed: &'a str,
    /// The messages that show it, in the same revision.
    pub evidence: &'a [EvidenceExcerpt],
    /// The affected revisions, oldest first.
    pub locations: Vec<FindingLocation>,
    /// The violation is in the baseline and does not count.
    pub in_baseline: bool,
}

/// A revision on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingLocation {
    /// The revision.
    pub revision: Revision,
    /// The transport.
    pub transport: &'static str,
}

impl Report {
    /// Returns the violations, by level and then in catalog order.
    pub fn findings(&self) -> Vec<RuleFinding<'_>> {
        let mut findings: Vec<(String, RuleFinding<'_>)> = Vec::new();
        for (run, result) in self.results() {
            let Some((key, new)) = RuleFinding::from_result(run, result) else {
                continue;
            };
            let same = |(other, old): &&mut (String, RuleFinding<'_>)| {
                *other == key && old.level == new.level && old.in_baseline == new.in_baseline
            };
            match findings.iter_mut().find(same) {
                Some((_, old)) => old.join(new),
                None => findings.push((key, new)),
            }
        }
        let mut findings: Vec<_> = findings.into_iter().map(|(_, finding)| finding).collect();
        findings.sort_by_key(|finding| {
            let position = crate::catalog::position(finding.rule);
            (
                finding.in_baseline,
                std::cmp::Reverse(finding.level),
                position,
            )
        });
        findings
    }
}

impl<'a> RuleFinding<'a> {
    /// Creates a finding from a result. Observations that differ only in the date of the revision
    /// are equal.
    fn from_result(run: &RunReport, result: &'a RuleResult) -> Option<(String, Self)> {
        let RuleOutcome::Violated { observed, evidence } = &result.outcome else {
            return None;
        };
        let key = observed.replace(run.revision.as_str(), "DATE");
        let finding = Self {
            rule: result.rule,
            level: result.level,
            observed,
            evidence,
            locations: vec![FindingLocation {
                revision: run.revision,
                transport: run.transport,
            }],
            in_baseline: result.in_baseline,
        };
        Some((format!("{} {key}", result.rule.id), finding))
    }

    fn join(&mut self, other: Self) {
        if self.newest() < other.newest() {
            (self.observed, self.evidence) = (other.observed, other.evidence);
        }
        self.locations.extend(other.locations);
        self.locations.sort_by_key(|location| location.revision);
    }

    fn newest(&self) -> Option<Revision> {
        self.locations
            .iter()
            .map(|location| location.revision)
            .max()
    }

    /// Returns the status.
    pub fn status(&self) -> RuleStatus {
        match self.level {
            RequirementLevel::Fail => RuleStatus::Fail,
            RequirementLevel::Warn => RuleStatus::Warn,
            RequirementLevel::Advice => RuleStatus::Advice,
        }
    }

    /// Returns the violated requirements.
    pub fn requirements(&self) -> Vec<&'static turnbuckle_spec_coverage::Requirement> {
        let revision = self.newest();
        let rows = revision.map(|revision| self.rule.requirements_in(revision));
        rows.into_iter().flatten().collect()
    }
}

const SITE: &str = "https://modelcontextprotocol.io";
const REPOSITORIES: &str = "https://github.com/modelcontextprotocol";

/// Returns the URL of the section that a requirement comes from, if it has one.
pub fn spec_link(source: &str) -> Option<String> {
    let (spec_link, section) = source.split_once('#').unwrap_or((source, ""));
    let (first, rest) = spec_link.split_once('/')?;
    let address = match first {
        "docs" => {
            let (_, spec_link) = rest.split_once('/')?;
            format!("{SITE}/docs/{spec_link}")
        }
        "seps" | "extensions" => format!("{SITE}/{spec_link}"),
        _ if first.starts_with("ext-") && rest.starts_with("specification/") => {
            format!("{REPOSITORIES}/{first}/blob/main/{rest}.mdx")
        }
        _ if first.starts_with("ext-") => return Some(format!("{REPOSITORIES}/{first}")),
        _ if first.starts_with("20") => format!("{SITE}/specification/{spec_link}"),
        _ => return None,
    };
    let address = address.strip_suffix("/index").unwrap_or(&address);
    Some(match section {
        "" | "top" => address.to_owned(),
        section => format!("{address}#{section}"),
    })
}

#[cfg(test)]
mod tests {
    use turnbuckle_spec_coverage::table;

    use super::*;

    #[test]
    fn requirement_links_to_its_section() {
        let pages = [
            "2026-07-28/basic/index#messages",
            "2025-11-25/basic/transports#session-management",
            "2025-11-25/basic/index#top",
            "docs/2026-07-28/tutorials/security/security_best_practices#confused-deputy-problem",
            "ext-tasks/specification/draft/tasks#task-polling",
            "seps/2575-stateless-mcp#security-implications",
        ];
        let pages: Vec<_> = pages
            .iter()
            .filter_map(|source| spec_link(source))
            .collect();

        insta::assert_snapshot!(pages.join("\n"), @r"
        https://modelcontextprotocol.io/specification/2026-07-28/basic#messages
        https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
        https://modelcontextprotocol.io/specification/2025-11-25/basic
        https://modelcontextprotocol.io/docs/tutorials/security/security_best_practices#confused-deputy-problem
        https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.mdx#task-polling
        https://modelcontextprotocol.io/seps/2575-stateless-mcp#security-implications
        ");
    }

    #[test]
    fn most_requirements_have_a_link() {
        let without = table::all()
            .iter()
            .filter(|row| spec_link(row.source).is_none());

        assert!(without.count() < 5);
    }
}
