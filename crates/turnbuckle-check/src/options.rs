//! What the user of a check has chosen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::rule::Rule;

/// How far a check may go, and what it looks at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The revisions that are looked at; all by default.
    pub revisions: Vec<Revision>,
    /// Calls of tools that may be made, with their arguments.
    pub calls: Vec<(String, Value)>,
    /// Whether tools may be called that do not say that they only read.
    pub allow_writes: bool,
    /// Which rules are looked at: a name, the beginning of names up to a dot, or an area; all if there is none.
    pub only: Vec<String>,
    /// Which rules are left out, said in the same way.
    pub skip: Vec<String>,
    /// How long an answer may take.
    pub patience: Duration,
    /// How long to listen when nothing is expected to come.
    pub silence: Duration,
    /// How long a client says nothing before its run counts as done.
    pub quiet: Duration,
    /// How long a run of a client may take.
    pub longest: Duration,
    watcher: Watcher,
}

/// How far a check has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How many rulings there are, in all revisions together.
    pub done: usize,
    /// How many there will be.
    pub total: usize,
    /// The revision that is looked at.
    pub revision: Revision,
    /// The rule that is looked at.
    pub rule: &'static str,
}

/// Who is told how far a check has come.
#[derive(Clone, Default)]
struct Watcher(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Default for Options {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.into(),
            calls: Vec::new(),
            allow_writes: false,
            only: Vec::new(),
            skip: Vec::new(),
            patience: Duration::from_secs(5),
            silence: Duration::from_millis(150),
            quiet: Duration::from_secs(3),
            longest: Duration::from_secs(20),
            watcher: Watcher::default(),
        }
    }
}

impl Options {
    /// Tells somebody how far the check has come.
    pub fn on_progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.watcher = Watcher(Some(Arc::new(tell)));
        self
    }

    /// Says whether a rule is looked at.
    pub fn wants(&self, rule: &Rule) -> bool {
        let named = |names: &[String]| names.iter().any(|name| rule.is_called(name));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    pub(crate) fn tell(&self, progress: Progress) {
        if let Some(tell) = &self.watcher.0 {
            tell(progress);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Watcher"
        } else {
            "nobody"
        })
    }
}
