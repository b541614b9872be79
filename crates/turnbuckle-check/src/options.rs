//! Options of a check.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::rule::{Area, Rule};

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
    pub(crate) on_message: MessageCallback,
}

/// A message of a check, sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckMessage<'a> {
    /// The revision being checked.
    pub revision: Revision,
    /// Sent by the side that is checked.
    pub from_peer: bool,
    /// `POST /mcp` or `200`, on HTTP.
    pub start_line: Option<&'a str>,
    /// The message, line or body.
    pub text: &'a str,
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
    /// The area of the rule.
    pub area: Area,
}

/// A callback for progress.
#[derive(Clone, Default)]
struct ProgressCallback(Option<Arc<dyn Fn(CheckProgress) + Send + Sync>>);

/// A callback for messages.
#[derive(Clone, Default)]
pub(crate) struct MessageCallback(Option<Arc<MessageFn>>);

type MessageFn = dyn Fn(CheckMessage<'_>) + Send + Sync;

impl MessageCallback {
    /// Passes a message on, if there is a callback.
    pub(crate) fn call(&self, message: CheckMessage<'_>) {
        if let Some(callback) = &self.0 {
            callback(message);
        }
    }
}

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
            on_message: MessageCallback::default(),
        }
    }
}

impl CheckOptions {
    /// Sets a callback that receives the progress.
    pub fn on_progress(mut self, callback: impl Fn(CheckProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = ProgressCallback(Some(Arc::new(callback)));
        self
    }

    /// Sets a callback that receives every message of a check of a server. Secrets in headers are redacted.
    pub fn on_message(
        mut self,
        callback: impl Fn(CheckMessage<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.on_message = MessageCallback(Some(Arc::new(callback)));
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

impl fmt::Debug for MessageCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "MessageCallback(set)"
        } else {
            "MessageCallback(unset)"
        })
    }
}
