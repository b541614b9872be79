//! What is known to be broken, so that only what is new counts.
//!
//! A line for each: the rule, the revision and the transport, and after `#` whatever people want to say. A revision or a
//! transport that is left out, or is `*`, means all of them.
//!
//! ```text
//! # Until the gateway is replaced.
//! http.get-without-stream  2025-11-25  http
//! tools.unknown-tool       *           *     # answers with a result
//! ```
//!
//! The same as JSON is a list of objects with `rule`, `revision`, `transport` and `why`.

use std::fmt;

use serde::{Deserialize, Serialize};
use turnbuckle_protocol::revision::Revision;

use crate::catalogue;
use crate::report::{Report, Ruling, Run, Verdict, View};

/// The transports, as reports name them.
const TRANSPORTS: [&str; 4] = ["stdio", "lines", "http", "http+sse"];

/// What is known to be broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<Entry>,
}

/// A rule that is known to be broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// The rule.
    pub rule: String,
    /// The revision; all if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The transport; all if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// What people say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Why a text is no baseline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadBaseline {
    /// It begins like JSON and is not what we know.
    #[error("it is no list of known failures: {0}")]
    Json(serde_json::Error),
    /// A line has more words than a rule, a revision and a transport.
    #[error(
        "line {0} has more than a rule, a revision and a transport; what people say stands after `#`"
    )]
    TooManyWords(usize),
    /// A word is no revision.
    #[error("`{0}` is no revision")]
    NoRevision(String),
    /// A word is no transport.
    #[error("`{0}` is no transport: there is {list}", list = TRANSPORTS.join(", "))]
    NoTransport(String),
    /// There is no such rule.
    #[error(transparent)]
    NoRule(#[from] catalogue::Unknown),
}

impl Baseline {
    /// Reads known failures: lines, or JSON.
    ///
    /// # Errors
    ///
    /// If it is neither, or names a rule or a revision that does not exist.
    pub fn parse(text: &str) -> Result<Self, BadBaseline> {
        let entries = match text.trim_start().starts_with('[') {
            true => serde_json::from_str(text).map_err(BadBaseline::Json)?,
            false => lines(text)?,
        };
        for entry in &entries {
            entry.ensure()?;
        }
        Ok(Self { entries })
    }

    /// Returns a baseline with all that counts and is broken.
    pub fn of(report: &Report, view: &View) -> Self {
        let broken = report.rulings().filter(|(_, ruling)| {
            matches!(ruling.verdict, Verdict::Broken { .. }) && ruling.level >= view.counts
        });
        let entry = |(run, ruling): (&Run, &Ruling)| Entry {
            rule: ruling.rule.id.to_owned(),
            revision: Some(run.revision.as_str().to_owned()),
            transport: Some(run.transport.to_owned()),
            why: None,
        };
        let mut entries: Vec<_> = broken.map(entry).collect();
        entries.sort();
        entries.dedup();
        Self { entries }
    }

    /// Marks what is known in a report, and notes what is known and not broken any more.
    ///
    /// What was not looked at, or could not be tested, may be as broken as before.
    pub fn apply(&self, report: &mut Report) {
        report.stale.clear();
        for entry in &self.entries {
            let (mut seen, mut open) = (false, false);
            for run in report.runs.iter_mut().filter(|run| entry.is_about(run)) {
                let rulings = run.rulings.iter_mut();
                for ruling in rulings.filter(|ruling| ruling.rule.id == entry.rule) {
                    seen = true;
                    ruling.known |= matches!(ruling.verdict, Verdict::Broken { .. });
                    open |= matches!(
                        ruling.verdict,
                        Verdict::Broken { .. } | Verdict::NotTested(_)
                    );
                }
            }
            if seen && !open {
                report.stale.push(entry.clone());
            }
        }
    }
}

/// The same lines as are read.
impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# What `turnbuckle check` found and is known: rule, revision, transport.\n")?;
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}

impl Entry {
    fn is_about(&self, run: &Run) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|one| one == is);
        fits(&self.revision, run.revision.as_str()) && fits(&self.transport, run.transport)
    }

    fn ensure(&self) -> Result<(), BadBaseline> {
        if catalogue::find(&self.rule).is_none() {
            return Err(catalogue::Unknown::new(&self.rule).into());
        }
        if let Some(date) = &self.revision
            && date.parse::<Revision>().is_err()
        {
            return Err(BadBaseline::NoRevision(date.clone()));
        }
        match &self.transport {
            Some(name) if !TRANSPORTS.contains(&name.as_str()) => {
                Err(BadBaseline::NoTransport(name.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Entry {
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

fn lines(text: &str) -> Result<Vec<Entry>, BadBaseline> {
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
            return Err(BadBaseline::TooManyWords(at + 1));
        }
        let why = Some(why.trim()).filter(|why| !why.is_empty());
        entries.push(Entry {
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
