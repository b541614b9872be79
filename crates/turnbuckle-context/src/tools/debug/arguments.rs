//! What the debug tools are asked.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::trace::EntryType;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Create {
    /// What is being debugged.
    #[schemars(length(min = 1, max = 1000))]
    pub(super) program: String,
    #[serde(default)]
    pub(super) target_type: TargetType,
}

/// What kind of program it is. Only kept with the session.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum TargetType {
    #[default]
    Interpreter,
    Smf,
    Native,
    Remote,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Close {
    /// As debug_create_session returned it.
    pub(super) session_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Enable {
    /// Glob on the name of tool, prompt, URI or method; one that begins with `debug` includes these tools.
    #[serde(default = "everything")]
    pub(super) pattern: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Query {
    /// Only what is newer than this entry.
    pub(super) since_id: Option<u64>,
    /// Only calls that begin, or only those that end.
    pub(super) entry_type: Option<EntryType>,
    /// At most so many.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) max_results: u16,
    /// Glob on the name of tool, prompt or URI.
    pub(super) function_pattern: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TreeArguments {
    /// How the tree is written.
    #[serde(default)]
    pub(super) format: Format,
    /// How deep to go; default all the way.
    pub(super) max_depth: Option<u32>,
    /// Only what is newer than this entry.
    pub(super) since_id: Option<u64>,
    /// Groups whose children are shown; default all.
    pub(super) expanded_groups: Option<BTreeSet<u64>>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Format {
    #[default]
    Text,
    Json,
}

impl TargetType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Smf => "smf",
            Self::Native => "native",
            Self::Remote => "remote",
        }
    }
}

impl Format {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

fn everything() -> String {
    "*".to_owned()
}

fn hundred() -> u16 {
    100
}
