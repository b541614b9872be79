//! The call log of one caller.

use std::{collections::VecDeque, fmt};

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use turnbuckle_server::middleware::OperationOutcome;

use super::{
    entry,
    entry::{CallNames, LogEntry, LogEntryType},
};
use crate::{ContextError, storage::database::now};

/// Maximum number and size of entries; the oldest are removed first.
const MAX_ENTRIES: usize = 2_000;
const MAX_BYTES: usize = 512 * 1024;
/// Maximum number of open debug sessions.
const MAX_SESSIONS: usize = 16;
/// Maximum length of the program name.
const MAX_PROGRAM_CHARS: usize = 500;

/// The log entries of one caller, and the debug sessions that group them.
#[derive(Debug)]
pub(crate) struct OwnerLog {
    /// Identifies this log and the number of times it was cleared, so that calls that started earlier do not record their end.
    epoch: (u64, u64),
    filter: Option<NamePattern>,
    last_filter: NamePattern,
    entries: VecDeque<LogEntry>,
    bytes: usize,
    last_entry: u64,
    last_group: u64,
    sessions: Vec<OpenSession>,
}

/// A debug session: calls are grouped under it while it is open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(crate) struct DebugSession {
    pub(crate) session_id: String,
    /// Name of the debugged program.
    pub(crate) program: String,
    pub(crate) target_type: String,
    /// recording, or paused while the log is disabled.
    pub(crate) state: &'static str,
}

#[derive(Debug)]
struct OpenSession {
    session: DebugSession,
    depth: u32,
    open_call: OpenCall,
}

/// A recorded call or session that has not ended.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    epoch: (u64, u64),
    group: u64,
    parent: u64,
    depth: u32,
    call: CallNames,
    at: Instant,
}

/// A query for log entries.
#[derive(Debug, Default)]
pub(crate) struct LogQuery {
    pub(crate) since: Option<u64>,
    pub(crate) kind: Option<LogEntryType>,
    pub(crate) function: Option<NamePattern>,
    pub(crate) limit: usize,
}

impl OwnerLog {
    /// Creates an empty log that records all calls.
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            epoch: (epoch, 0),
            filter: Some(NamePattern::everything()),
            last_filter: NamePattern::everything(),
            entries: VecDeque::new(),
            bytes: 0,
            last_entry: 0,
            last_group: 0,
            sessions: Vec::new(),
        }
    }

    /// Records matching calls from now on.
    pub(crate) fn enable(&mut self, pattern: NamePattern) {
        self.last_filter = pattern.clone();
        self.filter = Some(pattern);
    }

    /// Stops recording. The ends of running calls are still recorded.
    pub(crate) fn disable(&mut self) {
        self.filter = None;
    }

    /// Deletes all entries. Sessions stay open.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.epoch.1 += 1;
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns the current pattern, or the last one if recording is disabled.
    pub(crate) fn pattern(&self) -> &NamePattern {
        &self.last_filter
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the depth of a call made now.
    pub(crate) fn depth(&self) -> u32 {
        self.sessions.last().map_or(0, |open| open.depth + 1)
    }

    /// Returns all entries, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.entries.iter()
    }

    /// Returns matching entries, oldest first: the next ones after `since`, or else the newest.
    pub(crate) fn query(&self, query: &LogQuery) -> Vec<LogEntry> {
        let since = query.since.unwrap_or(0);
        let function = query.function.as_ref();
        let fits = |entry: &&LogEntry| {
            entry.entry_id > since
                && query.kind.is_none_or(|kind| kind == entry.entry_type)
                && function.is_none_or(|pattern| pattern.matches(&entry.function_name))
        };
        let found: Vec<&LogEntry> = self.entries.iter().filter(fits).collect();
        let skipped = match query.since {
            Some(_) => 0,
            None => found.len().saturating_sub(query.limit),
        };
        let shown = found.into_iter().skip(skipped).take(query.limit);
        shown.cloned().collect()
    }

    /// Returns whether to record a call. Calls of debug tools are skipped unless the pattern starts with `debug`.
    pub(super) fn should_record(&self, call: &CallNames) -> bool {
        let Some(filter) = &self.filter else {
            return false;
        };
        if call.is_about_call_log() && !filter.as_str().starts_with("debug") {
            return false;
        }
        filter.matches(&call.function) || filter.matches(&call.method)
    }

    /// Records the start of a call.
    pub(super) fn enter(&mut self, call: CallNames, params: String) -> OpenCall {
        let open_call = self.open_call(call);
        let message = open_call.call.method.clone();
        self.record(&open_call, LogEntryType::Enter, None, params, message);
        open_call
    }

    /// Records the end of a call, unless the log was cleared since its start.
    pub(super) fn exit(&mut self, open_call: &OpenCall, ending: OperationOutcome) {
        self.record_exit(open_call, ending.to_string());
    }

    /// Opens a session under the most recent one.
    pub(crate) fn open(
        &mut self,
        program: &str,
        target_type: &str,
    ) -> Result<DebugSession, ContextError> {
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(ContextError::invalid(format!(
                "{MAX_SESSIONS} sessions are open; close one with debug_close_session first"
            )));
        }
        let program = entry::summarize(program, MAX_PROGRAM_CHARS);
        let call = CallNames {
            package: "debug".to_owned(),
            class: target_type.to_owned(),
            function: program.clone(),
            method: "session".to_owned(),
        };
        let depth = self.depth();
        let open_call = self.open_call(call);
        if self.is_enabled() {
            let message = open_call.call.method.clone();
            self.record(
                &open_call,
                LogEntryType::Enter,
                None,
                String::new(),
                message,
            );
        }
        let session = DebugSession {
            session_id: format!("session_{}", open_call.group),
            program,
            target_type: target_type.to_owned(),
            state: "",
        };
        self.sessions.push(OpenSession {
            session: session.clone(),
            depth,
            open_call,
        });
        Ok(self.with_state(session))
    }

    /// Returns the open sessions, oldest first.
    pub(crate) fn sessions(&self) -> Vec<DebugSession> {
        let sessions = self.sessions.iter();
        sessions
            .map(|open| self.with_state(open.session.clone()))
            .collect()
    }

    /// Closes a session.
    pub(crate) fn close(&mut self, id: &str) -> Result<(), ContextError> {
        let found = self
            .sessions
            .iter()
            .position(|open| open.session.session_id == id);
        let Some(found) = found else {
            let id = entry::summarize(id, 80);
            return Err(ContextError::invalid(format!(
                "unknown session `{id}`; call debug_list_sessions to see the open sessions"
            )));
        };
        let open = self.sessions.remove(found);
        if self.is_enabled() {
            self.record_exit(&open.open_call, "closed".to_owned());
        }
        Ok(())
    }

    fn with_state(&self, session: DebugSession) -> DebugSession {
        let state = if self.is_enabled() {
            "recording"
        } else {
            "paused"
        };
        DebugSession { state, ..session }
    }

    fn open_call(&mut self, call: CallNames) -> OpenCall {
        self.last_group += 1;
        OpenCall {
            epoch: self.epoch,
            group: self.last_group,
            parent: self.sessions.last().map_or(0, |open| open.open_call.group),
            depth: self.depth(),
            call,
            at: Instant::now(),
        }
    }

    fn record_exit(&mut self, open_call: &OpenCall, message: String) {
        if open_call.epoch == self.epoch {
            let milliseconds = open_call.at.elapsed().as_micros() as f64 / 1000.0;
            let duration = Some(milliseconds);
            self.record(
                open_call,
                LogEntryType::Exit,
                duration,
                String::new(),
                message,
            );
        }
    }

    fn record(
        &mut self,
        open_call: &OpenCall,
        entry_type: LogEntryType,
        duration_ms: Option<f64>,
        params_text: String,
        message: String,
    ) {
        self.last_entry += 1;
        let entry = LogEntry {
            entry_id: self.last_entry,
            group_id: open_call.group,
            parent_group_id: open_call.parent,
            depth: open_call.depth,
            entry_type,
            package_path: open_call.call.package.clone(),
            class_name: open_call.call.class.clone(),
            function_name: open_call.call.function.clone(),
            line_number: 0,
            timestamp_ms: now(),
            duration_ms,
            params_text,
            message,
        };
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |entry| entry.bytes());
        }
    }
}

/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 200;

/// A pattern for names: `*` matches any characters, `?` matches one.
///
/// It is compiled to a regular expression, which matches in linear time. `docs/decisions/name-patterns.md` has the reason why
/// `globset` is not used.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    text: String,
    regex: Regex,
}

impl NamePattern {
    /// Parses a pattern. Every text of at most [`MAX_PATTERN_BYTES`] is valid, except the empty one.
    pub(crate) fn new(pattern: &str) -> Result<Self, ContextError> {
        match pattern.len() {
            0 => Err(ContextError::invalid(
                "the pattern is empty; pass `*` to match everything",
            )),
            1..=MAX_PATTERN_BYTES => Ok(Self::compile(pattern)),
            _ => Err(ContextError::invalid(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes; use `*` for the parts that vary"
            ))),
        }
    }

    /// Returns the pattern that every name matches.
    pub(crate) fn everything() -> Self {
        Self::compile("*")
    }

    fn compile(pattern: &str) -> Self {
        let regex = regex::escape(pattern)
            .replace(r"\*", ".*")
            .replace(r"\?", ".");
        Self {
            text: pattern.to_owned(),
            regex: Regex::new(&format!("(?s)^{regex}$")).expect("an escaped text is valid"),
        }
    }

    /// Returns whether a name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// Returns the pattern as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_are_wildcards() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("checkpoint_*", "checkpoint_save", true),
            ("checkpoint_*", "skill_save", false),
            ("*_save", "skill_save", true),
            ("*_save", "skill_saved", false),
            ("*e*e*", "remediation_search", true),
            ("s?ve", "save", true),
            ("s?ve", "sve", false),
            ("?", "é", true),
            ("??", "é", false),
            ("save", "save", true),
            ("save", "Save", false),
            ("**", "x", true),
            ("a.[b]*", "a.[b]c\nd", true),
            ("a.b", "axb", false),
        ];
        for (pattern, name, expected) in cases {
            let glob = NamePattern::new(pattern).unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_matches_quickly() {
        let glob = NamePattern::new(&"*a".repeat(100)).unwrap();
        assert!(!glob.matches(&"a".repeat(10_000).replace("aaaa", "aaab")));
    }

    #[test]
    fn empty_and_too_long_patterns_are_rejected() {
        assert!(NamePattern::new("").is_err());
        assert!(NamePattern::new(&"a".repeat(201)).is_err());
    }
}
