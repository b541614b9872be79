//! What the debug tools answer.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::ToText,
    trace::{CallLogStatus, DebugSession, LogEntry},
};

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<DebugSession>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionClosed {
    /// The session that was closed.
    pub(super) closed: String,
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogEnabled {
    pub(super) status: &'static str,
    pub(super) filter_pattern: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogDisabled {
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogCleared {
    pub(super) status: &'static str,
    pub(super) entry_count: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogEntries {
    pub(super) count: usize,
    pub(super) entries: Vec<LogEntry>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogTree {
    pub(super) format: &'static str,
    /// Text, or an array of nodes.
    pub(super) tree: Value,
    #[serde(skip)]
    pub(super) text: String,
}

impl ToText for DebugSession {
    fn to_text(&self) -> String {
        format!(
            "{} is open ({}): calls are grouped below it until it is closed",
            self.session_id, self.state
        )
    }
}

impl ToText for SessionList {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for session in &self.sessions {
            let _ = writeln!(
                text,
                "{} {} ({}) {}",
                session.session_id, session.program, session.target_type, session.state
            );
        }
        match text.is_empty() {
            true => "no debug session is open".to_owned(),
            false => text,
        }
    }
}

impl ToText for SessionClosed {
    fn to_text(&self) -> String {
        format!("{} is closed", self.closed)
    }
}

impl ToText for LogEnabled {
    fn to_text(&self) -> String {
        format!("calls that match `{}` are noted", self.filter_pattern)
    }
}

impl ToText for LogDisabled {
    fn to_text(&self) -> String {
        "calls are no longer noted".to_owned()
    }
}

impl ToText for LogCleared {
    fn to_text(&self) -> String {
        "the log is empty".to_owned()
    }
}

impl ToText for CallLogStatus {
    fn to_text(&self) -> String {
        // As JSON: scripts look for `"enabled":true` in it.
        json!(self).to_string()
    }
}

impl ToText for LogEntries {
    fn to_text(&self) -> String {
        match self.entries.is_empty() {
            true => "nothing of this is noted".to_owned(),
            false => self.entries.iter().map(ToString::to_string).collect(),
        }
    }
}

impl ToText for LogTree {
    fn to_text(&self) -> String {
        match self.text.is_empty() {
            true => "nothing is noted".to_owned(),
            false => self.text.clone(),
        }
    }
}
