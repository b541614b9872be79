//! What the user of a check has chosen.

use std::time::Duration;

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

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
    /// Which rules are looked at: a name, or the beginning of names up to a dot; all if there is none.
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
}

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
            quiet: Duration::from_millis(1500),
            longest: Duration::from_secs(20),
        }
    }
}

impl Options {
    /// Says whether a rule is looked at.
    pub fn wants(&self, id: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| covers(name, id));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }
}

/// Says whether a name is this one, or the beginning of it up to a dot.
fn covers(name: &str, id: &str) -> bool {
    id.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
