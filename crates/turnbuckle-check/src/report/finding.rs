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
    requirement: Option<&'static str>,
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
        let RuleOutcome::Violated {
            observed,
            evidence,
            requirement,
        } = &result.outcome
        else {
            return None;
        };
        // Further lines quote stderr, which differs between runs.
        let line = observed.lines().next().unwrap_or_default();
        let key = line.replace(run.revision.as_str(), "DATE");
        let finding = Self {
            rule: result.rule,
            level: result.level,
            observed,
            evidence,
            requirement: *requirement,
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
            self.requirement = other.requirement;
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

    /// Returns the violated requirement; none for advice.
    pub fn requirement(&self) -> Option<&'static turnbuckle_spec_coverage::Requirement> {
        let revision = self.newest()?;
        self.rule.violated_requirement(self.requirement, revision)
    }

    /// Returns the URL of the section with the violated requirement, in the newest affected revision.
    pub fn link(&self) -> Option<String> {
        spec_link_in(self.requirement()?.source, self.newest()?)
    }
}

/// A section of a page that earlier revisions have elsewhere: its page and anchor, the last revision that has it
/// elsewhere, and the page and anchor there.
type MovedSection = (&'static str, Revision, &'static str);

const MOVED_SECTIONS: &[MovedSection] = &[
    (
        "basic/index#messages",
        Revision::V2024_11_05,
        "basic/messages",
    ),
    (
        "basic/index#requests",
        Revision::V2024_11_05,
        "basic/messages#requests",
    ),
    (
        "basic/index#notifications",
        Revision::V2024_11_05,
        "basic/messages#notifications",
    ),
    (
        "basic/index#result-responses",
        Revision::V2024_11_05,
        "basic/messages#responses",
    ),
    (
        "basic/index#error-responses",
        Revision::V2024_11_05,
        "basic/messages#responses",
    ),
    (
        "basic/index#result-responses",
        Revision::V2025_06_18,
        "basic/index#responses",
    ),
    (
        "basic/index#error-responses",
        Revision::V2025_06_18,
        "basic/index#responses",
    ),
    (
        "basic/transports/streamable-http#security-endpoint",
        Revision::V2025_11_25,
        "basic/transports#security-warning",
    ),
    (
        "basic/transports/streamable-http#sending-messages",
        Revision::V2025_11_25,
        "basic/transports#sending-messages-to-the-server",
    ),
    (
        "basic/transports/index#messages",
        Revision::V2025_11_25,
        "basic/transports",
    ),
    (
        "basic/transports/streamable-http#receiving-messages",
        Revision::V2025_11_25,
        "basic/transports",
    ),
    (
        "basic/transports/streamable-http#standard-request-headers",
        Revision::V2025_11_25,
        "basic/transports",
    ),
    (
        "basic/authorization/security-considerations#authorization-code-protection",
        Revision::V2025_03_26,
        "basic/authorization",
    ),
    (
        "basic/authorization/security-considerations#communication-security",
        Revision::V2025_03_26,
        "basic/authorization",
    ),
    (
        "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
        Revision::V2025_06_18,
        "basic/authorization",
    ),
    (
        "client/elicitation#requested-schema",
        Revision::V2025_06_18,
        "client/elicitation",
    ),
    (
        "schema#cancellednotificationparams",
        Revision::V2025_06_18,
        "schema",
    ),
    (
        "schema#createmessagerequestparams",
        Revision::V2025_06_18,
        "schema",
    ),
    ("schema#error", Revision::V2025_06_18, "schema"),
    ("schema#invalidparamserror", Revision::V2025_11_25, "schema"),
    (
        "schema#invalidrequesterror",
        Revision::V2025_11_25,
        "schema",
    ),
    (
        "schema#loggingmessagenotificationparams",
        Revision::V2025_06_18,
        "schema",
    ),
    (
        "schema#methodnotfounderror",
        Revision::V2025_11_25,
        "schema",
    ),
    ("schema#parseerror", Revision::V2025_11_25, "schema"),
    (
        "schema#progressnotificationparams",
        Revision::V2025_06_18,
        "schema",
    ),
];

/// Pages with other names in earlier revisions, which may lack their sections.
const MOVED_PAGES: &[(&str, &str)] = &[
    ("basic/transports/streamable-http", "basic/transports"),
    ("basic/transports/stdio", "basic/transports"),
    ("basic/transports/index", "basic/transports"),
    ("basic/versioning", "basic/lifecycle"),
    (
        "basic/patterns/cancellation",
        "basic/utilities/cancellation",
    ),
    ("basic/patterns/progress", "basic/utilities/progress"),
    ("basic/authorization/index", "basic/authorization"),
    (
        "basic/authorization/authorization-server-discovery",
        "basic/authorization",
    ),
    (
        "basic/authorization/client-registration",
        "basic/authorization",
    ),
    (
        "basic/authorization/security-considerations",
        "basic/authorization",
    ),
];

/// Returns the URL of the section in this revision that a requirement comes from.
///
/// The source of a requirement is its section in the newest revision that has it. Earlier revisions have some sections
/// on other pages; where a section is missing, the link leads to the page.
pub fn spec_link_in(source: &str, revision: Revision) -> Option<String> {
    let (page, section) = source.split_once('#').unwrap_or((source, ""));
    // The first draft shares the pages of the next revision.
    let date = revision.max(Revision::V2024_11_05).as_str();
    let Some((first, page)) = page.split_once('/').filter(|(first, _)| *first != date) else {
        return spec_link(source);
    };
    if !first.starts_with("20") {
        return spec_link(source);
    }
    if page == "schema" && revision <= Revision::V2025_03_26 {
        return Some(format!(
            "{REPOSITORIES}/modelcontextprotocol/blob/main/schema/{date}/schema.ts"
        ));
    }
    let key = format!("{page}#{section}");
    let moved = MOVED_SECTIONS
        .iter()
        .find(|(later, last, _)| *later == key && revision <= *last);
    if let Some((_, _, earlier)) = moved {
        return spec_link(&format!("{date}/{earlier}"));
    }
    let other = MOVED_PAGES.iter().find(|(later, _)| *later == page);
    let page = other.map_or(page, |(_, earlier)| earlier);
    spec_link(&format!("{date}/{page}#{section}"))
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
    fn link_leads_to_the_revision_that_was_judged() {
        let links = [
            (
                "2026-07-28/schema#methodnotfounderror",
                Revision::V2025_11_25,
            ),
            ("2026-07-28/schema#tool", Revision::V2025_03_26),
            (
                "2026-07-28/basic/index#error-responses",
                Revision::V2025_06_18,
            ),
            ("2026-07-28/basic/index#requests", Revision::V2024_10_07),
            (
                "2026-07-28/basic/transports/streamable-http#sending-messages",
                Revision::V2025_06_18,
            ),
            (
                "2026-07-28/basic/patterns/progress#progress-flow",
                Revision::V2024_11_05,
            ),
            (
                "2026-07-28/server/tools#error-handling",
                Revision::V2026_07_28,
            ),
            (
                "seps/2575-stateless-mcp#security-implications",
                Revision::V2025_11_25,
            ),
        ];
        let links: Vec<_> = links
            .into_iter()
            .filter_map(|(source, revision)| spec_link_in(source, revision))
            .collect();

        insta::assert_snapshot!(links.join("\n"), @r"
        https://modelcontextprotocol.io/specification/2025-11-25/schema
        https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema/2025-03-26/schema.ts
        https://modelcontextprotocol.io/specification/2025-06-18/basic#responses
        https://modelcontextprotocol.io/specification/2024-11-05/basic/messages#requests
        https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#sending-messages-to-the-server
        https://modelcontextprotocol.io/specification/2024-11-05/basic/utilities/progress#progress-flow
        https://modelcontextprotocol.io/specification/2026-07-28/server/tools#error-handling
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
