//! Writes recordings.

use super::{
    EntryKind, GapEntry, MAX_ENTRY_BYTES, RecordedEntry, RecordingHeader, RedactionRules,
    entry::append_json, redaction::Redactor,
};

/// The part of a full file that is left for the last gaps.
const RESERVED_BYTES: u64 = 4 * 1024;

/// The size limits of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingLimits {
    /// The maximum length of a line in bytes.
    pub entry: usize,
    /// The maximum length of the file in bytes.
    pub file: u64,
}

impl Default for RecordingLimits {
    /// 16 MiB for a line, and 1 GiB for the file.
    fn default() -> Self {
        Self {
            entry: MAX_ENTRY_BYTES,
            file: 1024 * 1024 * 1024,
        }
    }
}

impl RecordingLimits {
    /// Sets the maximum length of a line.
    #[must_use]
    pub fn entry(mut self, bytes: usize) -> Self {
        self.entry = bytes;
        self
    }

    /// Sets the maximum length of the file.
    #[must_use]
    pub fn file(mut self, bytes: u64) -> Self {
        self.file = bytes;
        self
    }
}

/// Turns entries into the lines of a recording: numbers and redacts them, and limits their size.
///
/// An entry beyond a limit is replaced by a `gap`. Once the file is full, entries are only counted.
#[derive(Debug, Default)]
pub struct RecordingWriter {
    redactor: Redactor,
    limits: RecordingLimits,
    last_seq: u64,
    written: u64,
    is_full: bool,
    /// The entries that were dropped since the file is full.
    dropped: u64,
}

impl RecordingWriter {
    /// Creates a writer for a new recording.
    pub fn new(rules: RedactionRules, limits: RecordingLimits) -> Self {
        Self {
            redactor: Redactor::new(rules),
            limits,
            ..Self::default()
        }
    }

    /// Appends the header; its list of redactions is set.
    pub fn write_header(&mut self, out: &mut Vec<u8>, mut header: RecordingHeader) {
        header.redacted = self.redactor.names();
        let start = out.len();
        append_json(out, &header);
        out.push(b'\n');
        self.written += (out.len() - start) as u64;
    }

    /// Appends an entry at a time and of a connection.
    pub fn write(&mut self, out: &mut Vec<u8>, t: u64, conn: u64, mut kind: EntryKind) {
        if self.is_full {
            self.dropped += 1;
            return;
        }
        let is_message_too_long = matches!(&kind, EntryKind::Message(entry) if entry.message.as_str().len() > self.limits.entry);
        if !is_message_too_long {
            self.redactor.redact(&mut kind);
            let start = out.len();
            self.append(out, t, conn, kind);
            let length = out.len() - start;
            if length <= self.limits.entry {
                return self.fit(out, start, t, conn);
            }
            out.truncate(start);
            self.last_seq -= 1;
        }
        let start = out.len();
        self.append(out, t, conn, EntryKind::Gap(GapEntry::new(1, "entry")));
        self.fit(out, start, t, conn);
    }

    /// Appends a final gap, if entries were dropped because the file is full.
    pub fn finish(&mut self, out: &mut Vec<u8>, t: u64) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.append(out, t, 0, EntryKind::Gap(GapEntry::new(dropped, "file")));
        }
    }

    /// Returns whether the file is full, so that entries are only counted.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts the new line, or replaces it by a gap if the file is full.
    fn fit(&mut self, out: &mut Vec<u8>, start: usize, t: u64, conn: u64) {
        let length = (out.len() - start) as u64;
        if self.written + length + RESERVED_BYTES <= self.limits.file {
            self.written += length;
            return;
        }
        out.truncate(start);
        self.last_seq -= 1;
        self.is_full = true;
        self.append(out, t, conn, EntryKind::Gap(GapEntry::new(1, "file")));
    }

    fn append(&mut self, out: &mut Vec<u8>, t: u64, conn: u64, kind: EntryKind) {
        self.last_seq += 1;
        let seq = self.last_seq;
        RecordedEntry { seq, t, conn, kind }.write(out);
    }
}
