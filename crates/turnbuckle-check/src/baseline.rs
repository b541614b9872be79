//! A baseline of known violations, so that only new ones fail a check.
//!
//! Each line has a rule, a revision and a transport, and an optional comment after `#`. A missing revision or
//! transport, or `*`, means all.
//!
//! ```text
//! # Until the gateway is replaced.
//! http.get-without-stream  2025-11-25  http
//! tools.unknown-tool       *           *     # returns a result
//! ```
//!
//! The JSON form is an array of objects with `rule`, `revision`, `transport` and `why`.

use std::fmt;

use serde::{Deserialize, Serialize};
use turnbuckle_protocol::{
    json::{self, JsonError},
    revision::Revision,
};

use crate::{
    catalog,
    report::{Report, ReportOptions, RuleOutcome, RuleResult, RunReport},
};

/// The transport names used in reports.
const TRANSPORTS: [&str; 4] = ["stdio", "lines", "http", "http+sse"];

/// A list of known violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<BaselineEntry>,
}

/// A known violation and where it occurs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BaselineEntry {
    /// The rule.
    pub rule: String,
    /// The revision; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// A comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A text could not be parsed as a baseline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The text starts like JSON but does not parse.
    #[error("invalid baseline: {0}")]
    Json(serde_json::Error),
    /// The JSON is not a list of entries.
    #[error("invalid baseline: {0}")]
    Entries(JsonError),
    /// A line has more fields than a rule, a revision and a transport.
    #[error("line {0}: expected a rule, a revision and a transport; comments start with `#`")]
    TooManyWords(usize),
    /// The revision is unknown.
    #[error("unknown revision `{0}`")]
    UnknownRevision(String),
    /// The transport is unknown.
    #[error("unknown transport `{0}`: expected one of {list}", list = TRANSPORTS.join(", "))]
    UnknownTransport(String),
    /// The rule is unknown.
    #[error(transparent)]
    UnknownRule(#[from] catalog::UnknownRule),
}

impl Baseline {
    /// Parses a baseline: lines or JSON.
    ///
    /// # Errors
    ///
    /// If the text does not parse, or names an unknown rule, revision or transport.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let entries = if text.trim_start().starts_with('[') {
            let value = serde_json::from_str(text).map_err(BaselineError::Json)?;
            json::from_value(&value).map_err(BaselineError::Entries)?
        } else {
            lines(text)?
        };
        for entry in &entries {
            entry.validate()?;
        }
        Ok(Self { entries })
    }

    /// Returns a baseline of all violations in a report that count as failures.
    pub fn from_report(report: &Report, options: &ReportOptions) -> Self {
        let violated = report.results().filter(|(_, result)| {
            matches!(result.outcome, RuleOutcome::Violated { .. })
                && result.level >= options.fail_on
        });
        let entry = |(run, result): (&RunReport, &RuleResult)| BaselineEntry {
            rule: result.rule.id.to_owned(),
            revision: Some(run.revision.as_str().to_owned()),
            transport: Some(run.transport.to_owned()),
            why: None,
        };
        let mut entries: Vec<_> = violated.map(entry).collect();
        entries.sort();
        entries.dedup();
        Self { entries }
    }

    /// Marks known violations in a report, and collects baseline entries that no longer apply.
    ///
    /// Entries for rules that were skipped or not tested are kept.
    pub fn apply(&self, report: &mut Report) {
        report.stale_baseline.clear();
        for entry in &self.entries {
            let (mut evidence, mut open) = (false, false);
            for run in report.runs.iter_mut().filter(|run| entry.is_about(run)) {
                let results = run.results.iter_mut();
                for result in results.filter(|result| result.rule.id == entry.rule) {
                    evidence = true;
                    result.in_baseline |= matches!(result.outcome, RuleOutcome::Violated { .. });
                    open |= matches!(
                        result.outcome,
                        RuleOutcome::Violated { .. } | RuleOutcome::NotTested(_)
                    );
                }
            }
            if evidence && !open {
                report.stale_baseline.push(entry.clone());
            }
        }
    }
}

/// Writes the line format.
impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# Known violations of `turnbuckle check`: rule, revision, transport.\n")?;
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}

impl BaselineEntry {
    fn is_about(&self, run: &RunReport) -> bool {
        let fits =
            |expected: &Option<String>, is: &str| expected.as_ref().is_none_or(|one| one == is);
        fits(&self.revision, run.revision.as_str()) && fits(&self.transport, run.transport)
    }

    fn validate(&self) -> Result<(), BaselineError> {
        if catalog::find(&self.rule).is_none() {
            return Err(catalog::UnknownRule::new(&self.rule).into());
        }
        if let Some(date) = &self.revision
            && date.parse::<Revision>().is_err()
        {
            return Err(BaselineError::UnknownRevision(date.clone()));
        }
        match &self.transport {
            Some(name) if !TRANSPORTS.contains(&name.as_str()) => {
                Err(BaselineError::UnknownTransport(name.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for BaselineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |word: &Option<String>| word.clone().unwrap_or_else(|| "*".to_owned());
        write!(
            f,
            "{} {} {}",
            self.rule,
            all(&self.revision),
            all(&self.transport)
        )?;
        match &self.why {
            Some(why) => write!(f, " # {why}"),
            None => Ok(()),
        }
    }
}

fn lines(text: &str) -> Result<Vec<BaselineEntry>, BaselineError> {
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (words, why) = line.split_once('#').unwrap_or((line, ""));
        let mut words = words.split_whitespace();
        let Some(rule) = words.next() else { continue };
        let mut word = || {
            let word = words.next().filter(|word| *word != "*");
            word.map(str::to_owned)
        };
        let (revision, transport) = (word(), word());
        if words.next().is_some() {
            return Err(BaselineError::TooManyWords(at + 1));
        }
        let why = Some(why.trim()).filter(|why| !why.is_empty());
        entries.push(BaselineEntry {
            rule: rule.to_owned(),
            revision,
            transport,
            why: why.map(str::to_owned),
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
