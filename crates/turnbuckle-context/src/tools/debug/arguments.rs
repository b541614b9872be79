//! What the debug tools are asked.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::trace::LogEntryType;

#[derive(Deserialize, JsonSchema)]
pub(super) struct EmptyArgs {}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateSessionArgs {
    /// What is being debugged.
    #[schemars(length(min = 1, max = 1000))]
    pub(super) program: String,
    #[serde(default)]
    pub(super) target_type: DebugTargetType,
}

/// What kind of program it is. Only kept with the session.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum DebugTargetType {
    #[default]
    Interpreter,
    Smf,
    Native,
    Remote,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CloseSessionArgs {
    /// As debug_create_session returned it.
    pub(super) session_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct EnableLogArgs {
    /// Glob on the name of tool, prompt, URI or method; one that begins with `debug` includes these tools.
    #[serde(default = "default_pattern")]
    pub(super) pattern: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct QueryLogArgs {
    /// Only what is newer than this entry.
    pub(super) since_id: Option<u64>,
    /// Only calls that begin, or only those that end.
    pub(super) entry_type: Option<LogEntryType>,
    /// At most so many.
    #[serde(default = "default_max_results")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) max_results: u16,
    /// Glob on the name of tool, prompt or URI.
    pub(super) function_pattern: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TreeArgs {
    /// How the tree is written.
    #[serde(default)]
    pub(super) format: TreeFormat,
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
pub(super) enum TreeFormat {
    #[default]
    Text,
    Json,
}

impl DebugTargetType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Smf => "smf",
            Self::Native => "native",
            Self::Remote => "remote",
        }
    }
}

impl TreeFormat {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

fn default_pattern() -> String {
    "*".to_owned()
}

fn default_max_results() -> u16 {
    100
}
