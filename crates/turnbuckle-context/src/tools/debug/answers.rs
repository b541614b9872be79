//! What the debug tools answer.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::Readable;
use crate::trace::{Entry, Session, Status};

#[derive(Serialize, JsonSchema)]
pub(super) struct Sessions {
    pub(super) sessions: Vec<Session>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Closed {
    /// The session that was closed.
    pub(super) closed: String,
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Enabled {
    pub(super) status: &'static str,
    pub(super) filter_pattern: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Disabled {
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Cleared {
    pub(super) status: &'static str,
    pub(super) entry_count: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Found {
    pub(super) count: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tree {
    pub(super) format: &'static str,
    /// Text, or an array of nodes.
    pub(super) tree: Value,
    #[serde(skip)]
    pub(super) text: String,
}

impl Readable for Session {
    fn text(&self) -> String {
        format!(
            "{} is open ({}): calls are grouped below it until it is closed",
            self.session_id, self.state
        )
    }
}

impl Readable for Sessions {
    fn text(&self) -> String {
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

impl Readable for Closed {
    fn text(&self) -> String {
        format!("{} is closed", self.closed)
    }
}

impl Readable for Enabled {
    fn text(&self) -> String {
        format!("calls that match `{}` are noted", self.filter_pattern)
    }
}

impl Readable for Disabled {
    fn text(&self) -> String {
        "calls are no longer noted".to_owned()
    }
}

impl Readable for Cleared {
    fn text(&self) -> String {
        "the log is empty".to_owned()
    }
}

impl Readable for Status {
    fn text(&self) -> String {
        // As JSON: scripts look for `"enabled":true` in it.
        json!(self).to_string()
    }
}

impl Readable for Found {
    fn text(&self) -> String {
        match self.entries.is_empty() {
            true => "nothing of this is noted".to_owned(),
            false => self.entries.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Readable for Tree {
    fn text(&self) -> String {
        match self.text.is_empty() {
            true => "nothing is noted".to_owned(),
            false => self.text.clone(),
        }
    }
}
