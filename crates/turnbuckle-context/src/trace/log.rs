//! The notes of one caller.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;
use turnbuckle_server::middleware::Ending;

use super::entry::{Call, Entry, EntryType};
use super::{Glob, params};
use crate::ContextError;
use crate::database::now;

/// Notes and bytes that are kept; the oldest go first.
const MOST_ENTRIES: usize = 2_000;
const MOST_BYTES: usize = 512 * 1024;
/// Debug sessions that may be open at a time.
const MOST_SESSIONS: usize = 16;
/// Letters of the program's name that are kept.
const LONGEST_PROGRAM: usize = 500;

/// The notes of one caller, and the debug sessions that group them.
#[derive(Debug)]
pub(crate) struct Log {
    /// Tells this log from those that were forgotten, and what was noted before from what was after a clearing.
    epoch: (u64, u64),
    filter: Option<Glob>,
    last_filter: Glob,
    entries: VecDeque<Entry>,
    bytes: usize,
    last_entry: u64,
    last_group: u64,
    sessions: Vec<Open>,
}

/// A debug session: what is called while it is open is shown below it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Session {
    pub(crate) session_id: String,
    /// What is being debugged, in the caller's words.
    pub(crate) program: String,
    pub(crate) target_type: String,
    /// `recording`, or `paused` while the log is off.
    pub(crate) state: &'static str,
}

#[derive(Debug)]
struct Open {
    session: Session,
    depth: u32,
    begun: Begun,
}

/// A call or a session that is noted and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    epoch: (u64, u64),
    group: u64,
    parent: u64,
    depth: u32,
    call: Call,
    at: Instant,
}

/// Which notes are wanted.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) since: Option<u64>,
    pub(crate) kind: Option<EntryType>,
    pub(crate) function: Option<Glob>,
    pub(crate) most: usize,
}

impl Log {
    /// An empty log that notes everything.
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            epoch: (epoch, 0),
            filter: Some(Glob::everything()),
            last_filter: Glob::everything(),
            entries: VecDeque::new(),
            bytes: 0,
            last_entry: 0,
            last_group: 0,
            sessions: Vec::new(),
        }
    }

    /// Notes from now on what matches.
    pub(crate) fn enable(&mut self, pattern: Glob) {
        self.last_filter = pattern.clone();
        self.filter = Some(pattern);
    }

    /// Notes nothing from now on. Calls that run are still seen to their end.
    pub(crate) fn disable(&mut self) {
        self.filter = None;
    }

    /// Forgets all notes. Sessions stay open.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.epoch.1 += 1;
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.filter.is_some()
    }

    /// The pattern of what is noted, or was before noting was turned off.
    pub(crate) fn pattern(&self) -> &Glob {
        &self.last_filter
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How deep a call would stand that was made now.
    pub(crate) fn depth(&self) -> u32 {
        self.sessions.last().map_or(0, |open| open.depth + 1)
    }

    /// All notes, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The notes that are wanted, oldest first: the next ones after a note, or else the newest.
    pub(crate) fn query(&self, wanted: &Wanted) -> Vec<Entry> {
        let since = wanted.since.unwrap_or(0);
        let function = wanted.function.as_ref();
        let fits = |entry: &&Entry| {
            entry.entry_id > since
                && wanted.kind.is_none_or(|kind| kind == entry.entry_type)
                && function.is_none_or(|pattern| pattern.matches(&entry.function_name))
        };
        let found: Vec<&Entry> = self.entries.iter().filter(fits).collect();
        let skipped = match wanted.since {
            Some(_) => 0,
            None => found.len().saturating_sub(wanted.most),
        };
        let shown = found.into_iter().skip(skipped).take(wanted.most);
        shown.cloned().collect()
    }

    /// Says whether a call is to be noted. The tools of the trace are left out unless the pattern names them.
    pub(super) fn wants(&self, call: &Call) -> bool {
        let Some(filter) = &self.filter else {
            return false;
        };
        if call.is_about_the_trace() && !filter.as_str().starts_with("debug") {
            return false;
        }
        filter.matches(&call.function) || filter.matches(&call.method)
    }

    /// Notes that a call begins.
    pub(super) fn enter(&mut self, call: Call, params: String) -> Begun {
        let begun = self.begin(call);
        let message = begun.call.method.clone();
        self.note(&begun, EntryType::Enter, None, params, message);
        begun
    }

    /// Notes that a call ended, unless its beginning was forgotten meanwhile.
    pub(super) fn exit(&mut self, begun: &Begun, ending: Ending) {
        self.leave(begun, ending.to_string());
    }

    /// Opens a session below the one that was opened last.
    pub(crate) fn open(
        &mut self,
        program: &str,
        target_type: &str,
    ) -> Result<Session, ContextError> {
        if self.sessions.len() >= MOST_SESSIONS {
            return Err(ContextError::refused(format!(
                "{MOST_SESSIONS} sessions are open; close one with debug_close_session first"
            )));
        }
        let program = params::brief(program, LONGEST_PROGRAM);
        let call = Call {
            package: "debug".to_owned(),
            class: target_type.to_owned(),
            function: program.clone(),
            method: "session".to_owned(),
        };
        let depth = self.depth();
        let begun = self.begin(call);
        if self.is_enabled() {
            let message = begun.call.method.clone();
            self.note(&begun, EntryType::Enter, None, String::new(), message);
        }
        let session = Session {
            session_id: format!("session_{}", begun.group),
            program,
            target_type: target_type.to_owned(),
            state: "",
        };
        self.sessions.push(Open {
            session: session.clone(),
            depth,
            begun,
        });
        Ok(self.as_is(session))
    }

    /// The open sessions, oldest first.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        let sessions = self.sessions.iter();
        sessions
            .map(|open| self.as_is(open.session.clone()))
            .collect()
    }

    /// Closes a session.
    pub(crate) fn close(&mut self, id: &str) -> Result<(), ContextError> {
        let found = self
            .sessions
            .iter()
            .position(|open| open.session.session_id == id);
        let Some(found) = found else {
            let id = params::brief(id, 80);
            return Err(ContextError::refused(format!(
                "there is no open session `{id}`; debug_list_sessions shows those there are"
            )));
        };
        let open = self.sessions.remove(found);
        if self.is_enabled() {
            self.leave(&open.begun, "closed".to_owned());
        }
        Ok(())
    }

    fn as_is(&self, session: Session) -> Session {
        let state = match self.is_enabled() {
            true => "recording",
            false => "paused",
        };
        Session { state, ..session }
    }

    fn begin(&mut self, call: Call) -> Begun {
        self.last_group += 1;
        Begun {
            epoch: self.epoch,
            group: self.last_group,
            parent: self.sessions.last().map_or(0, |open| open.begun.group),
            depth: self.depth(),
            call,
            at: Instant::now(),
        }
    }

    fn leave(&mut self, begun: &Begun, message: String) {
        if begun.epoch == self.epoch {
            let milliseconds = begun.at.elapsed().as_micros() as f64 / 1000.0;
            let duration = Some(milliseconds);
            self.note(begun, EntryType::Exit, duration, String::new(), message);
        }
    }

    fn note(
        &mut self,
        begun: &Begun,
        entry_type: EntryType,
        duration_ms: Option<f64>,
        params_text: String,
        message: String,
    ) {
        self.last_entry += 1;
        let entry = Entry {
            entry_id: self.last_entry,
            group_id: begun.group,
            parent_group_id: begun.parent,
            depth: begun.depth,
            entry_type,
            package_path: begun.call.package.clone(),
            class_name: begun.call.class.clone(),
            function_name: begun.call.function.clone(),
            line_number: 0,
            timestamp_ms: now(),
            duration_ms,
            params_text,
            message,
        };
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > MOST_ENTRIES || self.bytes > MOST_BYTES {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |entry| entry.bytes());
        }
    }
}
