//! Log entries, and the arguments in them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnbuckle_server::middleware::Operation;

use super::OWN_NAMES;
use crate::Redactor;

/// Maximum length of a name; clients choose names freely.
const MAX_NAME_CHARS: usize = 200;

/// The start or end of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub(crate) struct LogEntry {
    /// Increases with each entry.
    pub(crate) entry_id: u64,
    /// Shared by the start and end of a call.
    pub(crate) group_id: u64,
    /// Group of the enclosing debug session, or 0.
    pub(crate) parent_group_id: u64,
    pub(crate) depth: u32,
    pub(crate) entry_type: LogEntryType,
    /// Area of the method, such as `tools`.
    pub(crate) package_path: String,
    /// Name of the client.
    pub(crate) class_name: String,
    /// Tool, prompt, URI or method.
    pub(crate) function_name: String,
    /// Always 0.
    pub(crate) line_number: u32,
    pub(crate) timestamp_ms: i64,
    pub(crate) duration_ms: Option<f64>,
    /// Arguments, shortened and redacted.
    pub(crate) params_text: String,
    /// At the start the method, at the end the outcome.
    pub(crate) message: String,
}

/// Start or end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "EntryType")]
pub(crate) enum LogEntryType {
    Enter,
    Exit,
}

impl LogEntry {
    /// Returns the approximate size in memory.
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
    /// Writes one line of text.
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
            package: summarize(area, MAX_NAME_CHARS),
            class: summarize(client, MAX_NAME_CHARS),
            function: summarize(operation.target().unwrap_or(verb), MAX_NAME_CHARS),
            method: summarize(method, MAX_NAME_CHARS),
        }
    }

    /// Returns whether the call is about the call log itself.
    pub(super) fn is_about_call_log(&self) -> bool {
        OWN_NAMES.iter().any(|own| self.function.starts_with(own))
    }
}

/// Maximum size of recorded arguments; of larger ones only the size is recorded.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Maximum number of characters of one value, and of all arguments.
const MAX_VALUE_CHARS: usize = 120;
const MAX_PARAMS_CHARS: usize = 400;
/// Number of additional characters that are searched for secrets, because a truncated secret would not be found.
const REDACTION_MARGIN_CHARS: usize = 8 * 1024;

/// Returns the recorded form of arguments, given as JSON text.
pub(super) fn text(arguments: Option<&str>) -> String {
    let Some(json) = arguments else {
        return String::new();
    };
    if json.len() > MAX_ARGUMENT_BYTES {
        return format!("({} bytes)", json.len());
    }
    match serde_json::from_str(json) {
        Ok(mut value) => {
            shorten(&mut value);
            // Redact again as a whole: the name of an argument can reveal that its value is a secret.
            summarize(&value.to_string(), MAX_PARAMS_CHARS)
        }
        Err(_) => format!("({} bytes, invalid JSON)", json.len()),
    }
}

/// Returns the start of a text, redacted and without control characters.
pub(super) fn summarize(text: &str, max_chars: usize) -> String {
    let searched = text.char_indices().nth(max_chars + REDACTION_MARGIN_CHARS);
    let searched = searched.map_or(text, |(end, _)| &text[..end]);
    let redacted = Redactor::standard().redact(searched);
    let mut rest = redacted.text.chars();
    let mut summary = String::new();
    summary.extend(rest.by_ref().take(max_chars).map(replace_control));
    if rest.next().is_some() || searched.len() < text.len() {
        summary.push('…');
    }
    summary
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = summarize(text, MAX_VALUE_CHARS),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn replace_control(character: char) -> char {
    if character.is_control() {
        ' '
    } else {
        character
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_truncated_individually() {
        let json = serde_json::json!({ "content": "x".repeat(1000), "limit": 3 }).to_string();
        let text = text(Some(&json));
        assert!(text.ends_with("…\",\"limit\":3}"), "{text}");
        assert!(text.len() < 200, "{text}");
    }

    #[test]
    fn only_the_size_of_huge_arguments_is_recorded() {
        let json = format!("[{:?}]", "x".repeat(MAX_ARGUMENT_BYTES));
        assert_eq!(text(Some(&json)), format!("({} bytes)", json.len()));
        assert_eq!(text(None), "");
    }

    #[test]
    fn secrets_are_redacted_even_where_the_text_is_truncated() {
        let token = format!("ghp_{}", "aB3dE6gH9".repeat(4));
        for before in [0, 60, 100, 118] {
            let content = format!("{} {token} after", "x".repeat(before));
            let json = serde_json::json!({ "content": content }).to_string();
            let text = text(Some(&json));
            assert!(!text.contains("ghp_"), "{text}");
        }
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi\n-----END RSA PRIVATE KEY-----";
        let json = serde_json::json!({ "content": key }).to_string();
        assert!(!text(Some(&json)).contains("MIIEow"));
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(summarize("a\u{1b}[31mb\nc", 50), "a [31mb c");
        assert_eq!(summarize("äöü", 2), "äö…");
    }
}
