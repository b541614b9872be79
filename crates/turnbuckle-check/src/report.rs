//! What came of a check.
//!
//! - [`findings`](Report::findings): what is broken, the same in several revisions once; [`page`]: where the specification
//!   says so.
//! - [`matrix`](Report::matrix), [`untold`](Report::untold): what stands where, and what could not be told.
//! - [`json`], [`junit`], [`sarif`], [`markdown`], [`html`]: a report as a text. Each takes a [`View`]. A terminal is
//!   somebody else's business.

pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;

mod finding;
mod matrix;
mod page;
#[cfg(test)]
pub(crate) mod sample;
mod text;
mod untold;

use std::time::Duration;

use serde::Serialize;
use turnbuckle_protocol::revision::Revision;

use crate::baseline::Entry;
use crate::outcome::{Outcome, Unmet};
use crate::rule::{Level, Role, Rule};
use crate::tape::{Tape, Way};

pub use self::finding::{Finding, Place};
pub use self::matrix::{Counts, Row};
pub use self::page::page;
pub use self::text::{excerpt, telling};
pub use self::untold::Reason;

/// So many pieces of evidence are kept for a ruling: what looks at everything could name everything.
const MOST_SHOWN: usize = 12;

/// So many characters of a message are kept as evidence; no format quotes more.
const LONGEST: usize = 20_000;

/// So many characters of what was seen, of a reason, or of a header are kept: they may quote the other side.
const LONGEST_LINE: usize = 1_000;

/// What came of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Who was checked: a server or a client.
    pub role: Role,
    /// The name by which the user knows it.
    pub target: String,
    /// How long it took.
    pub took: Duration,
    /// A run for each revision.
    pub runs: Vec<Run>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// What is known to be broken, and is not any more.
    pub stale: Vec<Entry>,
}

/// How a report is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// What matters at least so much counts when it is broken.
    pub counts: Level,
    /// What matters less is not shown.
    pub shows: Level,
}

/// What came of it in one revision, on one transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The revision.
    pub revision: Revision,
    /// The transport: `stdio`, `lines`, `http` or `http+sse`.
    pub transport: &'static str,
    /// Why there are no rulings: the other side does not speak the revision.
    pub not_spoken: Option<String>,
    /// A ruling for each rule that binds in the revision on the transport.
    pub rulings: Vec<Ruling>,
}

/// What came of one rule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ruling {
    /// The rule.
    pub rule: &'static Rule,
    /// How much it matters in this revision.
    pub level: Level,
    /// What was found out.
    pub verdict: Verdict,
    /// Whether it is broken and known to be: then it counts no more.
    pub known: bool,
}

/// What was found out about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept, as this shows.
    Kept(Vec<Shown>),
    /// It is broken.
    Broken {
        /// What was seen instead of what is right.
        what: String,
        /// The exchange that shows it.
        exchange: Vec<Shown>,
    },
    /// The other side has nothing that the rule is about, and how that is known.
    NotApplicable(String),
    /// Nothing was seen that would tell, and why.
    NotTested(String),
}

/// What a ruling comes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Kept.
    Pass,
    /// A MUST is broken.
    Fail,
    /// A SHOULD is broken.
    Warn,
    /// It could be better.
    Advice,
    /// There is nothing that the rule is about.
    NotApplicable,
    /// Nothing was seen that would tell.
    NotTested,
}

impl Grade {
    /// All of them, what is kept first.
    pub const ALL: [Self; 6] = [
        Self::Pass,
        Self::Fail,
        Self::Warn,
        Self::Advice,
        Self::NotApplicable,
        Self::NotTested,
    ];

    /// Returns a sign for it; signs differ in shape, not only in colour.
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

    /// Returns its name, as people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "kept",
            Self::Fail => "failed",
            Self::Warn => "warned",
            Self::Advice => "advised",
            Self::NotApplicable => "not applicable",
            Self::NotTested => "not tested",
        }
    }
}

/// A piece of what was said, as evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// Whether it came from the side that was checked.
    pub theirs: bool,
    /// `POST /mcp` or `200`, on HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The headers, on HTTP; secrets are masked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The message, as much of it as is kept.
    pub text: String,
    /// How many bytes the whole message has.
    #[serde(skip)]
    pub size: usize,
}

impl Report {
    /// Begins a report without runs.
    pub fn new(role: Role, target: &str) -> Self {
        Self {
            role,
            target: target.to_owned(),
            took: Duration::ZERO,
            runs: Vec::new(),
            left_out: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// Adds a run, and what was left out in it; either may quote the other side at length.
    pub(crate) fn add(&mut self, mut run: Run, left_out: Vec<String>) {
        run.not_spoken = run.not_spoken.map(|why| excerpt(&why, LONGEST_LINE));
        for what in left_out {
            let what = excerpt(&what, LONGEST_LINE);
            if !self.left_out.contains(&what) {
                self.left_out.push(what);
            }
        }
        self.runs.push(run);
    }

    /// Returns all rulings with the runs that they belong to.
    pub fn rulings(&self) -> impl Iterator<Item = (&Run, &Ruling)> {
        let runs = self.runs.iter();
        runs.flat_map(|run| run.rulings.iter().map(move |ruling| (run, ruling)))
    }

    /// Says how many rulings come down to this; what is known to be broken counts as that.
    pub fn count(&self, grade: Grade) -> usize {
        self.rulings()
            .filter(|(_, ruling)| ruling.grade() == grade)
            .count()
    }
}

/// A broken MUST counts, and everything is shown.
impl Default for View {
    fn default() -> Self {
        Self {
            counts: Level::Fail,
            shows: Level::Advice,
        }
    }
}

impl View {
    /// Returns the findings that are shown.
    pub fn findings<'a>(&self, report: &'a Report) -> Vec<Finding<'a>> {
        let mut findings = report.findings();
        findings.retain(|finding| finding.level >= self.shows);
        findings
    }

    /// Returns how many findings count.
    pub fn broken(&self, report: &Report) -> usize {
        let findings = report.findings().into_iter();
        findings
            .filter(|finding| finding.level >= self.counts && !finding.known)
            .count()
    }
}

impl Run {
    /// Begins a run without rulings.
    pub fn new(revision: Revision, transport: &'static str) -> Self {
        Self {
            revision,
            transport,
            not_spoken: None,
            rulings: Vec::new(),
        }
    }
}

impl Ruling {
    /// Rules on a rule in a revision.
    pub fn new(rule: &'static Rule, revision: Revision, verdict: Verdict) -> Self {
        Self {
            rule,
            level: rule.level_in(revision),
            verdict,
            known: false,
        }
    }

    /// Returns what it comes down to.
    pub fn grade(&self) -> Grade {
        match (&self.verdict, self.level) {
            (Verdict::Kept(_), _) => Grade::Pass,
            (Verdict::Broken { .. }, Level::Fail) => Grade::Fail,
            (Verdict::Broken { .. }, Level::Warn) => Grade::Warn,
            (Verdict::Broken { .. }, Level::Advice) => Grade::Advice,
            (Verdict::NotApplicable(_), _) => Grade::NotApplicable,
            (Verdict::NotTested(_), _) => Grade::NotTested,
        }
    }
}

impl Verdict {
    pub(crate) fn of(outcome: Outcome, tape: &Tape) -> Self {
        let shown = |entries: Vec<usize>| {
            let some = entries.iter().take(MOST_SHOWN);
            some.map(|&at| Shown::of(tape, at)).collect()
        };
        match outcome {
            Ok(seen) => Self::Kept(shown(seen.entries)),
            Err(Unmet::Broken { what, entries }) => Self::Broken {
                what: excerpt(&what, LONGEST_LINE),
                exchange: shown(entries),
            },
            Err(Unmet::NotApplicable(why)) => Self::NotApplicable(excerpt(&why, LONGEST_LINE)),
            Err(Unmet::NotTested(why)) => Self::NotTested(excerpt(&why, LONGEST_LINE)),
        }
    }
}

impl Shown {
    /// A message of the side that was checked, or of ours.
    pub fn new(theirs: bool, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let size = text.len();
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
        }
        Self {
            theirs,
            line: None,
            headers: Vec::new(),
            text,
            size,
        }
    }

    /// Returns the message up to so many characters, and says how much there was if that is not all.
    pub fn excerpt(&self, most: usize) -> String {
        text::cut(&self.text, most, self.size)
    }

    /// Puts what HTTP says before a body in front of it.
    pub fn with_head(mut self, line: &str, headers: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.line = Some(line.to_owned());
        self.headers = headers.iter().map(own).collect();
        self
    }

    fn of(tape: &Tape, number: usize) -> Self {
        let entry = tape.entry(number);
        let shown = Self::new(entry.way == Way::Received, entry.text);
        let Some(head) = entry.head else {
            return shown;
        };
        let headers = head.headers.into_iter();
        let short = |(name, value): (String, String)| (name, excerpt(&value, LONGEST_LINE));
        Self {
            line: Some(excerpt(&head.line, LONGEST_LINE)),
            headers: headers.map(short).collect(),
            ..shown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Entry, Head};

    #[test]
    fn a_run_is_short_however_much_was_said() {
        let mut report = Report::new(Role::Server, "server");
        let mut run = Run::new(Revision::V2025_11_25, "stdio");
        run.not_spoken = Some("a".repeat(100_000));

        report.add(run.clone(), vec!["b".repeat(100_000)]);
        report.add(run, vec!["b".repeat(100_000)]);

        let why = report.runs[0].not_spoken.as_deref().unwrap_or_default();
        assert!(why.len() < 1100 && why.ends_with("(100000 bytes in all)"));
        assert_eq!(report.left_out.len(), 1);
        assert!(report.left_out[0].len() < 1100);
    }

    #[test]
    fn evidence_is_short_however_much_was_said() {
        let tape = Tape::default();
        let long = "ä".repeat(100_000);
        let at = tape.push(Entry {
            head: Some(Head {
                line: format!("POST /{long}"),
                headers: vec![("x-long".into(), long.clone())],
            }),
            ..Entry::received(1, long.as_str())
        });
        let broken = Err(Unmet::broken(format!("the answer is {long}"), [at]));

        let Verdict::Broken { what, exchange } = Verdict::of(broken, &tape) else {
            panic!("it is broken");
        };

        assert!(what.chars().count() < 1100);
        let [shown] = &exchange[..] else {
            panic!("one is shown");
        };
        assert_eq!((shown.text.chars().count(), shown.size), (20_000, 200_000));
        assert!(shown.excerpt(10).ends_with("ää … (200000 bytes in all)"));
        assert!(shown.line.as_ref().is_some_and(|line| line.len() < 2100));
        assert!(shown.headers[0].1.len() < 2100);
    }
}
