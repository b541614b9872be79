//! What the debug tools answer.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::trace::{Entry, Session};

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
pub(super) struct Switched {
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
}
