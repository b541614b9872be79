//! Reads recordings, tolerantly and within limits.

use std::collections::VecDeque;

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    EntryKind, FORMAT_VERSION, MAX_ENTRY_BYTES, RecordedEntry, RecordingHeader, UnknownEntry,
};
use crate::{json, jsonrpc::RawObject};

/// A line of a recording.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RecordingLine {
    /// The header.
    Header(RecordingHeader),
    /// An entry.
    Entry(RecordedEntry),
}

/// A line that could not be read. Reading continues with the next line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
#[non_exhaustive]
pub struct RecordingError {
    /// The number of the line, counted from 1.
    pub line: u64,
    /// The reason.
    pub kind: RecordingErrorKind,
}

/// The reason why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingErrorKind {
    /// The first line is not a header.
    #[error("the header of a recording is missing")]
    MissingHeader,
    /// The recording has a newer version; its entries are read as far as possible.
    #[error("version {0} of the format is newer than version {FORMAT_VERSION}")]
    NewerVersion(u32),
    /// The line is longer than 16 MiB.
    #[error("the line is longer than {MAX_ENTRY_BYTES} bytes")]
    TooLong,
    /// The last line is incomplete.
    #[error("the last line is incomplete")]
    Truncated,
    /// The line is not an entry.
    #[error("not an entry: {0}")]
    Invalid(String),
}

/// Reads a recording from chunks of bytes, split anywhere.
#[derive(Debug)]
pub struct RecordingReader {
    limit: usize,
    /// The start of an incomplete line.
    partial: Vec<u8>,
    /// Whether the rest of a line that is too long is skipped.
    is_skipping: bool,
    line: u64,
    has_header: bool,
    /// What was read from the current line and not returned yet.
    pending: VecDeque<Result<RecordingLine, RecordingError>>,
}

impl Default for RecordingReader {
    fn default() -> Self {
        Self::new(MAX_ENTRY_BYTES)
    }
}

impl RecordingReader {
    /// Creates a reader for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            partial: Vec::new(),
            is_skipping: false,
            line: 0,
            has_header: false,
            pending: VecDeque::new(),
        }
    }

    /// Removes the next line from the front of `chunk`. Returns `None` once the chunk is used up.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Option<Result<RecordingLine, RecordingError>> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.buffer(std::mem::take(chunk));
                return None;
            };
            let (head, rest) = (&chunk[..end], &chunk[end + 1..]);
            *chunk = rest;
            self.end_line(head);
        }
    }

    /// Returns what is left after the last chunk: a last line without its end, if it is complete.
    pub fn finish(&mut self) -> Option<Result<RecordingLine, RecordingError>> {
        if self.pending.is_empty() && (!self.partial.is_empty() || self.is_skipping) {
            self.end_line(b"");
            if let Some(Err(error)) = self.pending.back_mut()
                && matches!(error.kind, RecordingErrorKind::Invalid(_))
            {
                error.kind = RecordingErrorKind::Truncated;
            }
        }
        self.pending.pop_front()
    }

    fn buffer(&mut self, head: &[u8]) {
        if self.is_skipping || head.is_empty() {
            return;
        }
        if self.partial.len() + head.len() > self.limit {
            self.partial = Vec::new();
            self.is_skipping = true;
            return;
        }
        self.partial.extend_from_slice(head);
    }

    fn end_line(&mut self, head: &[u8]) {
        self.line += 1;
        if self.partial.is_empty() && !self.is_skipping && head.len() <= self.limit {
            return self.read_line(head);
        }
        self.buffer(head);
        if std::mem::take(&mut self.is_skipping) {
            return self.fail(RecordingErrorKind::TooLong);
        }
        let line = std::mem::take(&mut self.partial);
        self.read_line(&line);
    }

    fn read_line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_header, true);
        if is_first {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            match read_object::<RecordingHeader>(line) {
                Ok(header) => {
                    let version = header.recording;
                    self.pending.push_back(Ok(RecordingLine::Header(header)));
                    if version > FORMAT_VERSION {
                        self.fail(RecordingErrorKind::NewerVersion(version));
                    }
                    return;
                }
                Err(_) => self.fail(RecordingErrorKind::MissingHeader),
            }
        }
        match read_entry(line) {
            Ok(entry) => self.pending.push_back(Ok(RecordingLine::Entry(entry))),
            // The first line was reported already.
            Err(_) if is_first => {}
            Err(reason) => self.fail(RecordingErrorKind::Invalid(reason)),
        }
    }

    fn fail(&mut self, kind: RecordingErrorKind) {
        let line = self.line;
        self.pending.push_back(Err(RecordingError { line, kind }));
    }
}

/// The members that every entry has.
#[derive(Deserialize)]
struct EntryHead {
    seq: u64,
    #[serde(default)]
    t: u64,
    #[serde(default)]
    conn: u64,
    kind: String,
}

fn read_entry(line: &[u8]) -> Result<RecordedEntry, String> {
    let head: EntryHead = read_object(line)?;
    let kind = match &*head.kind {
        "open" => EntryKind::Open(read_object(line)?),
        "close" => EntryKind::Close(read_object(line)?),
        "message" => EntryKind::Message(read_object(line)?),
        "noise" => EntryKind::Noise(read_object(line)?),
        "stderr" => EntryKind::Stderr(read_object(line)?),
        "request" => EntryKind::Request(read_object(line)?),
        "response" => EntryKind::Response(read_object(line)?),
        "end" => EntryKind::End(read_object(line)?),
        "event" => EntryKind::Event(read_object(line)?),
        "auth" => EntryKind::Auth(read_object(line)?),
        "anomaly" => EntryKind::Anomaly(read_object(line)?),
        "gap" => EntryKind::Gap(read_object(line)?),
        _ => {
            let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
            let object = RawObject::parse(text).map_err(|error| error.message)?;
            EntryKind::Unknown(UnknownEntry::new(head.kind, &object))
        }
    };
    Ok(RecordedEntry {
        seq: head.seq,
        t: head.t,
        conn: head.conn,
        kind,
    })
}

fn read_object<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    json::from_slice(line).map_err(|error| error.to_string())
}

/// A recording in memory.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// The header, if there is one.
    pub header: Option<RecordingHeader>,
    /// The entries in the order of the file.
    pub entries: Vec<RecordedEntry>,
    /// The lines that could not be read; at most 100.
    pub errors: Vec<RecordingError>,
}

impl Recording {
    /// The maximum number of errors that are stored.
    const MAX_ERRORS: usize = 100;

    /// Reads a whole recording.
    pub fn from_slice(mut bytes: &[u8]) -> Self {
        let mut reader = RecordingReader::default();
        let mut recording = Self::default();
        while let Some(line) = reader.next(&mut bytes) {
            recording.add(line);
        }
        while let Some(line) = reader.finish() {
            recording.add(line);
        }
        recording
    }

    fn add(&mut self, line: Result<RecordingLine, RecordingError>) {
        match line {
            Ok(RecordingLine::Header(header)) => self.header = Some(header),
            Ok(RecordingLine::Entry(entry)) => self.entries.push(entry),
            Err(error) if self.errors.len() < Self::MAX_ERRORS => self.errors.push(error),
            Err(_) => {}
        }
    }
}
