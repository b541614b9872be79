//! Options of a check.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::rule::Rule;

/// The scope and the limits of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckOptions {
    /// The revisions to check; all by default.
    pub revisions: Vec<Revision>,
    /// Tool calls that may be made, with their arguments.
    pub calls: Vec<(String, Value)>,
    /// Allows calls of tools that are not annotated as read-only.
    pub allow_writes: bool,
    /// The rules to run: a rule id, an id prefix up to a dot, or an area. All if empty.
    pub only: Vec<String>,
    /// The rules to skip, in the same notation.
    pub skip: Vec<String>,
    /// The time limit for a response.
    pub response_timeout: Duration,
    /// The time to listen when no message is expected.
    pub quiet_period: Duration,
    /// The idle time after which a client run counts as finished.
    pub client_idle_timeout: Duration,
    /// The time limit for a client run.
    pub client_run_timeout: Duration,
    on_progress: ProgressCallback,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckProgress {
    /// The number of results so far, over all revisions.
    pub done: usize,
    /// The number of results expected.
    pub total: usize,
    /// The revision being checked.
    pub revision: Revision,
    /// The rule being run.
    pub rule: &'static str,
}

/// A callback for progress.
#[derive(Clone, Default)]
struct ProgressCallback(Option<Arc<dyn Fn(CheckProgress) + Send + Sync>>);

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.into(),
            calls: Vec::new(),
            allow_writes: false,
            only: Vec::new(),
            skip: Vec::new(),
            response_timeout: Duration::from_secs(5),
            quiet_period: Duration::from_millis(150),
            client_idle_timeout: Duration::from_secs(3),
            client_run_timeout: Duration::from_secs(20),
            on_progress: ProgressCallback::default(),
        }
    }
}

impl CheckOptions {
    /// Sets a callback that receives the progress.
    pub fn on_progress(mut self, callback: impl Fn(CheckProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = ProgressCallback(Some(Arc::new(callback)));
        self
    }

    /// Returns whether a rule is selected.
    pub fn selects(&self, rule: &Rule) -> bool {
        let named = |names: &[String]| names.iter().any(|name| rule.matches_name(name));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }

    pub(crate) fn report_progress(&self, progress: CheckProgress) {
        if let Some(callback) = &self.on_progress.0 {
            callback(progress);
        }
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "ProgressCallback(set)"
        } else {
            "ProgressCallback(unset)"
        })
    }
}
