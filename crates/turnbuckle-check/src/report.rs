//! The report of a check.
//!
//! - [`findings`](Report::findings): violations, merged over revisions; [`spec_link_in`]: the link to the specification.
//! - [`matrix`](Report::matrix), [`reasons_for`](Report::reasons_for): results by area, and reasons for rules without
//!   a result.
//! - [`json`], [`junit`], [`sarif`], [`markdown`], [`html`]: output formats, configured by [`ReportOptions`].
//!   Terminal output is up to the caller.

pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;

mod finding;
mod matrix;
#[cfg(test)]
pub(crate) mod sample;

use std::time::Duration;

use serde::Serialize;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_spec_coverage::Requirement;
use turnbuckle_text::sanitize::escape_block;

pub use self::{
    finding::{FindingLocation, RuleFinding, spec_link, spec_link_in},
    matrix::{AreaRow, StatusCounts, StatusReason},
};
use crate::{
    baseline::BaselineEntry,
    engine::{
        outcome::{NotPassed, Outcome},
        transcript::{Direction, Transcript},
    },
    rule::{RequirementLevel, Role, Rule},
    server_rules::STAYS_ALIVE,
};

/// The maximum number of evidence excerpts per result.
const MAX_EVIDENCE: usize = 12;

/// The maximum length of a message in the evidence; no format quotes more.
const MAX_TEXT_CHARS: usize = 20_000;

/// The maximum length of an observation, a reason or a header, which may quote the peer.
const MAX_LINE_CHARS: usize = 1_000;

/// The results of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The side that was checked.
    pub role: Role,
    /// The display name of the target.
    pub target: String,
    /// The duration of the check.
    pub duration: Duration,
    /// One run per revision.
    pub runs: Vec<RunReport>,
    /// Skipped steps, with reasons.
    pub skipped: Vec<String>,
    /// Baseline entries that no longer apply.
    pub stale_baseline: Vec<BaselineEntry>,
}

/// Options for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The minimum level of violations that count as failures.
    pub fail_on: RequirementLevel,
    /// The minimum level of findings to show.
    pub min_level: RequirementLevel,
}

/// The results of one revision on one transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunReport {
    /// The revision.
    pub revision: Revision,
    /// The transport: `stdio`, `lines`, `http` or `http+sse`.
    pub transport: &'static str,
    /// The reason why the peer does not support the revision; `results` is then empty.
    pub unsupported: Option<String>,
    /// One result per rule that applies.
    pub results: Vec<RuleResult>,
}

/// The result of one rule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleResult {
    /// The rule.
    pub rule: &'static Rule,
    /// The level in this revision.
    pub level: RequirementLevel,
    /// The outcome.
    pub outcome: RuleOutcome,
    /// The violation is in the baseline and does not count.
    pub in_baseline: bool,
}

/// The outcome of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// Passed, with evidence.
    Passed(Vec<EvidenceExcerpt>),
    /// Violated.
    Violated {
        /// The observed behavior.
        observed: String,
        /// The messages that show it.
        evidence: Vec<EvidenceExcerpt>,
        /// The violated requirement, if it is not the first of the rule.
        requirement: Option<&'static str>,
    },
    /// The peer does not have the feature, and how this is known.
    NotApplicable(String),
    /// Not tested, and why.
    NotTested(String),
}

/// The status of a rule, with the level of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleStatus {
    /// Passed.
    Pass,
    /// A MUST is violated.
    Fail,
    /// A SHOULD is violated.
    Warn,
    /// A recommendation is not followed.
    Advice,
    /// The feature is absent.
    NotApplicable,
    /// Not tested.
    NotTested,
}

impl RuleStatus {
    /// All statuses, `Pass` first.
    pub const ALL: [Self; 6] = [
        Self::Pass,
        Self::Fail,
        Self::Warn,
        Self::Advice,
        Self::NotApplicable,
        Self::NotTested,
    ];

    /// Returns a sign; signs differ in shape, not only in color.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Pass => "✓",
            Self::Fail => "✗",
            Self::Warn => "!",
            Self::Advice => "i",
            Self::NotApplicable => "–",
            Self::NotTested => "?",
        }
    }

    /// Returns the display name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Fail => "failed",
            Self::Warn => "warned",
            Self::Advice => "advised",
            Self::NotApplicable => "not applicable",
            Self::NotTested => "not tested",
        }
    }
}

/// An excerpt of a message, as evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EvidenceExcerpt {
    /// Sent by the side that was checked.
    pub from_peer: bool,
    /// `POST /mcp` or `200`, on HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_line: Option<String>,
    /// The HTTP headers, with secrets redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The message, up to the size limit.
    pub text: String,
    /// The size of the whole message in bytes.
    #[serde(skip)]
    pub size: usize,
}

impl Report {
    /// Creates a report without runs.
    pub fn new(role: Role, target: &str) -> Self {
        Self {
            role,
            target: target.to_owned(),
            duration: Duration::ZERO,
            runs: Vec::new(),
            skipped: Vec::new(),
            stale_baseline: Vec::new(),
        }
    }

    /// Adds a run and its skipped steps; both are cut to the size limit because they may quote the
    /// peer.
    pub(crate) fn add(&mut self, mut run: RunReport, skipped: Vec<String>) {
        run.unsupported = run.unsupported.map(|why| excerpt(&why, MAX_LINE_CHARS));
        for observed in skipped {
            let observed = excerpt(&observed, MAX_LINE_CHARS);
            if !self.skipped.contains(&observed) {
                self.skipped.push(observed);
            }
        }
        self.runs.push(run);
    }

    /// Returns all results with their runs.
    pub fn results(&self) -> impl Iterator<Item = (&RunReport, &RuleResult)> {
        let runs = self.runs.iter();
        runs.flat_map(|run| run.results.iter().map(move |result| (run, result)))
    }

    /// Returns how the server ended during the check, if it did: the check is then incomplete.
    pub fn server_end(&self) -> Option<&str> {
        let mut results = self.results().map(|(_, result)| result);
        results.find_map(|result| match &result.outcome {
            RuleOutcome::Violated { observed, .. } if result.rule.id == STAYS_ALIVE => {
                observed.split("; last lines of stderr").next()
            }
            _ => None,
        })
    }

    /// Returns the number of results with a status, including those in the baseline.
    pub fn count(&self, status: RuleStatus) -> usize {
        self.results()
            .filter(|(_, result)| result.status() == status)
            .count()
    }
}

/// Violations of MUST fail, and all levels are shown.
impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            fail_on: RequirementLevel::Fail,
            min_level: RequirementLevel::Advice,
        }
    }
}

impl ReportOptions {
    /// Returns the findings to show.
    pub fn findings<'a>(&self, report: &'a Report) -> Vec<RuleFinding<'a>> {
        let mut findings = report.findings();
        findings.retain(|finding| finding.level >= self.min_level);
        findings
    }

    /// Returns the number of findings that count as failures.
    pub fn failures(&self, report: &Report) -> usize {
        let findings = report.findings().into_iter();
        findings
            .filter(|finding| finding.level >= self.fail_on && !finding.in_baseline)
            .count()
    }
}

impl RunReport {
    /// Creates a run without results.
    pub fn new(revision: Revision, transport: &'static str) -> Self {
        Self {
            revision,
            transport,
            unsupported: None,
            results: Vec::new(),
        }
    }
}

impl RuleResult {
    /// Creates the result of a rule in a revision.
    pub fn new(rule: &'static Rule, revision: Revision, outcome: RuleOutcome) -> Self {
        let level = match &outcome {
            RuleOutcome::Violated { requirement, .. } => rule.level_of(*requirement, revision),
            _ => rule.level_in(revision),
        };
        Self {
            rule,
            level,
            outcome,
            in_baseline: false,
        }
    }

    /// Returns the requirement that a violation breaks.
    pub fn violated_requirement(&self, revision: Revision) -> Option<&'static Requirement> {
        match &self.outcome {
            RuleOutcome::Violated { requirement, .. } => {
                self.rule.violated_requirement(*requirement, revision)
            }
            _ => None,
        }
    }

    /// Returns the status.
    pub fn status(&self) -> RuleStatus {
        match (&self.outcome, self.level) {
            (RuleOutcome::Passed(_), _) => RuleStatus::Pass,
            (RuleOutcome::Violated { .. }, RequirementLevel::Fail) => RuleStatus::Fail,
            (RuleOutcome::Violated { .. }, RequirementLevel::Warn) => RuleStatus::Warn,
            (RuleOutcome::Violated { .. }, RequirementLevel::Advice) => RuleStatus::Advice,
            (RuleOutcome::NotApplicable(_), _) => RuleStatus::NotApplicable,
            (RuleOutcome::NotTested(_), _) => RuleStatus::NotTested,
        }
    }
}

impl RuleOutcome {
    pub(crate) fn from_outcome(outcome: Outcome, transcript: &Transcript) -> Self {
        let shown = |entries: Vec<usize>| {
            let some = entries.iter().take(MAX_EVIDENCE);
            some.map(|&at| EvidenceExcerpt::from_transcript(transcript, at))
                .collect()
        };
        match outcome {
            Ok(evidence) => Self::Passed(shown(evidence.entries)),
            Err(NotPassed::Violation {
                observed,
                entries,
                requirement,
            }) => Self::Violated {
                observed: excerpt(&observed, MAX_LINE_CHARS),
                evidence: shown(entries),
                requirement,
            },
            Err(NotPassed::NotApplicable(why)) => {
                Self::NotApplicable(excerpt(&why, MAX_LINE_CHARS))
            }
            Err(NotPassed::NotTested(why)) => Self::NotTested(excerpt(&why, MAX_LINE_CHARS)),
        }
    }
}

impl EvidenceExcerpt {
    /// Creates an excerpt of a message.
    pub fn new(from_peer: bool, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let size = text.len();
        if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_CHARS) {
            text.truncate(end);
        }
        Self {
            from_peer,
            start_line: None,
            headers: Vec::new(),
            text,
            size,
        }
    }

    /// Returns the message up to a number of characters, with the total size if it is cut.
    pub fn excerpt(&self, most: usize) -> String {
        cut(&self.text, most, self.size)
    }

    /// Adds the HTTP head.
    pub fn with_head(mut self, line: &str, headers: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.start_line = Some(line.to_owned());
        self.headers = headers.iter().map(own).collect();
        self
    }

    fn from_transcript(transcript: &Transcript, number: usize) -> Self {
        let entry = transcript.entry(number);
        let shown = Self::new(entry.direction == Direction::Received, entry.text);
        let Some(head) = entry.head else {
            return shown;
        };
        let headers = head.headers.into_iter();
        let short = |(name, value): (String, String)| (name, excerpt(&value, MAX_LINE_CHARS));
        Self {
            start_line: Some(excerpt(&head.start_line, MAX_LINE_CHARS)),
            headers: headers.map(short).collect(),
            ..shown
        }
    }
}

/// Headers that are left out of reports.
const IRRELEVANT_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-powered-by",
];

/// Returns text up to a number of characters, with the total size if it is cut.
pub fn excerpt(text: &str, max_chars: usize) -> String {
    cut(text, max_chars, text.len())
}

/// Like [`excerpt`], for text that is already cut from `total_bytes` bytes.
fn cut(text: &str, max_chars: usize, total_bytes: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} … ({total_bytes} bytes in all)", &text[..end]),
        None if text.len() < total_bytes => format!("{text} … ({total_bytes} bytes in all)"),
        None => text.to_owned(),
    }
}

/// Returns the headers worth showing.
pub fn relevant_headers(excerpt_of: &EvidenceExcerpt) -> impl Iterator<Item = (&str, &str)> {
    let headers = excerpt_of.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !IRRELEVANT_HEADERS.contains(name))
}

/// Returns a message, indented if it is JSON.
fn pretty(excerpt_of: &EvidenceExcerpt, max_chars: usize) -> String {
    let value = serde_json::from_str::<serde_json::Value>(&excerpt_of.text);
    match value.and_then(|value| serde_json::to_string_pretty(&value)) {
        Ok(pretty) => escape_block(&excerpt(&pretty, max_chars)),
        Err(_) => escape_block(&excerpt_of.excerpt(max_chars)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::transcript::{HttpHead, TranscriptEntry};

    #[test]
    fn reasons_in_a_run_are_limited() {
        let mut report = Report::new(Role::Server, "server");
        let mut run = RunReport::new(Revision::V2025_11_25, "stdio");
        run.unsupported = Some("a".repeat(100_000));

        report.add(run.clone(), vec!["b".repeat(100_000)]);
        report.add(run, vec!["b".repeat(100_000)]);

        let why = report.runs[0].unsupported.as_deref().unwrap_or_default();
        assert!(why.len() < 1100 && why.ends_with("(100000 bytes in all)"));
        assert_eq!(report.skipped.len(), 1);
        assert!(report.skipped[0].len() < 1100);
    }

    #[test]
    fn evidence_is_limited() {
        let transcript = Transcript::default();
        let long = "ä".repeat(100_000);
        let at = transcript.push(TranscriptEntry {
            head: Some(HttpHead {
                start_line: format!("POST /{long}"),
                headers: vec![("x-long".into(), long.clone())],
            }),
            ..TranscriptEntry::received(1, long.as_str())
        });
        let violated = Err(NotPassed::violation(
            format!("the response is {long}"),
            [at],
        ));

        let RuleOutcome::Violated {
            observed, evidence, ..
        } = RuleOutcome::from_outcome(violated, &transcript)
        else {
            panic!("expected a violation");
        };

        assert!(observed.chars().count() < 1100);
        let [shown] = &evidence[..] else {
            panic!("expected one excerpt");
        };
        assert_eq!((shown.text.chars().count(), shown.size), (20_000, 200_000));
        assert!(shown.excerpt(10).ends_with("ää … (200000 bytes in all)"));
        assert!(
            shown
                .start_line
                .as_ref()
                .is_some_and(|line| line.len() < 2100)
        );
        assert!(shown.headers[0].1.len() < 2100);
    }

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        let evidence = |text: &str| EvidenceExcerpt::new(true, text);

        assert_eq!(
            pretty(&evidence("a\u{1b}[2J\u{202e}b\n\tc\u{200b}"), 80),
            "a\\u{1b}[2J\\u{202e}b\n\tc\\u{200b}"
        );
        assert_eq!(
            pretty(&evidence("[\"\u{9b}31m\u{feff}\u{e0041}\"]"), 80),
            "[\n  \"\\u{9b}31m\\u{feff}\\u{e0041}\"\n]"
        );
        assert_eq!(pretty(&evidence("Blåbær, 東京"), 80), "Blåbær, 東京");
    }

    #[test]
    fn long_text_is_cut_at_a_character_boundary() {
        assert_eq!(excerpt("äöü", 2), "äö … (6 bytes in all)");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(cut("äö", 3, 9), "äö … (9 bytes in all)");
    }
}
