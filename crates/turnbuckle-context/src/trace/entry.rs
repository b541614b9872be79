//! What is noted of a call.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle_server::middleware::Operation;

use super::{OWN_NAMES, params};

/// Letters of a name that are kept; clients choose names as they like.
const MAX_NAME_CHARS: usize = 200;

/// A note: a call began, or it ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub(crate) struct LogEntry {
    /// Counts up; what is newer has a higher one.
    pub(crate) entry_id: u64,
    /// The same for the beginning and the end of a call.
    pub(crate) group_id: u64,
    /// The debug session around it; 0 if there is none.
    pub(crate) parent_group_id: u64,
    pub(crate) depth: u32,
    pub(crate) entry_type: LogEntryType,
    /// Area of the method, such as `tools`.
    pub(crate) package_path: String,
    /// Who called.
    pub(crate) class_name: String,
    /// Tool, prompt, URI, or what else was asked for.
    pub(crate) function_name: String,
    /// Always 0: calls have no line.
    pub(crate) line_number: u32,
    pub(crate) timestamp_ms: i64,
    pub(crate) duration_ms: Option<f64>,
    /// Arguments, shortened and without secrets.
    pub(crate) params_text: String,
    /// Method of a call that begins; how it ended.
    pub(crate) message: String,
}

/// Whether a call begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "EntryType")]
pub(crate) enum LogEntryType {
    Enter,
    Exit,
}

impl LogEntry {
    /// Roughly what it needs in memory.
    pub(super) fn bytes(&self) -> usize {
        let texts = [
            &self.package_path,
            &self.class_name,
            &self.function_name,
            &self.params_text,
            &self.message,
        ];
        size_of::<Self>() + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

impl fmt::Display for LogEntry {
    /// A line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, name, message) = (self.entry_id, self.name(), &self.message);
        match (self.entry_type, self.duration_ms) {
            (LogEntryType::Enter, _) => writeln!(f, "{id} > {name} {}", self.params_text),
            (LogEntryType::Exit, Some(ms)) => writeln!(f, "{id} < {name} {ms:.1} ms {message}"),
            (LogEntryType::Exit, None) => writeln!(f, "{id} < {name} {message}"),
        }
    }
}

/// The names of a call.
#[derive(Clone, Debug)]
pub(super) struct CallNames {
    pub(super) package: String,
    pub(super) class: String,
    pub(super) function: String,
    pub(super) method: String,
}

impl CallNames {
    pub(super) fn from_operation(operation: &Operation) -> Self {
        let method = operation.method();
        let (area, verb) = method.split_once('/').unwrap_or(("", method));
        let client = operation.client().map_or("", |client| &client.name);
        Self {
            package: params::summarize(area, MAX_NAME_CHARS),
            class: params::summarize(client, MAX_NAME_CHARS),
            function: params::summarize(operation.target().unwrap_or(verb), MAX_NAME_CHARS),
            method: params::summarize(method, MAX_NAME_CHARS),
        }
    }

    /// Says whether it asks for the trace itself.
    pub(super) fn is_about_call_log(&self) -> bool {
        OWN_NAMES.iter().any(|own| self.function.starts_with(own))
    }
}
