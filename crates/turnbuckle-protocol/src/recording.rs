//! Recordings: what a client and a server sent each other, as JSON Lines in a file named `.mcp.jsonl`.
//!
//! The first line is the [`RecordingHeader`]; every other line is a [`RecordedEntry`] with a number, a time and a
//! kind. [`RecordingWriter`] writes lines, removes secrets ([`RedactionRules`]) and limits the size.
//! [`RecordingReader`] reads them, also from a file that is still being written. [`Correlator`] finds which messages
//! belong together. Nothing here opens a file or reads a clock: times are arguments, in microseconds since the start.
//!
//! ```
//! use turnbuckle_protocol::recording::{
//!     EntryKind, MessageSide, Recording, RecordingHeader, RecordingWriter,
//! };
//!
//! let mut writer = RecordingWriter::default();
//! let mut file = Vec::new();
//! writer.write_header(&mut file, RecordingHeader::new("2026-11-18T02:00:00Z", "example"));
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! writer.write(&mut file, 812, 1, EntryKind::from_line(MessageSide::Client, line));
//!
//! let recording = Recording::from_slice(&file);
//! assert_eq!(recording.entries[0].t, 812);
//! assert!(recording.errors.is_empty());
//! ```

mod buffer;
mod candidates;
mod content;
mod correlation;
mod entry;
mod named_values;
mod reader;
mod redaction;
mod secret_names;
mod writer;

#[cfg(test)]
mod tests;

pub use buffer::{BufferLimits, BufferedLines, RecordingBuffer};
pub use content::{
    AnomalyEntry, AuthEntry, CloseEntry, EndEntry, EventEntry, GapEntry, HttpPhases, MessageEntry,
    OpenEntry, OutputEntry, RecordedMessage, RecordedText, RedactedValue, RequestEntry,
    ResponseEntry, UnknownEntry,
};
pub use correlation::{Correlator, EntryLink, LinkKind, MessageRef, correlate};
pub use entry::{EntryKind, MessageSide, RecordedEntry, RecordedTarget, RecordingHeader};
pub use reader::{Recording, RecordingError, RecordingErrorKind, RecordingLine, RecordingReader};
pub use redaction::{InvalidPointer, RedactionRules, Redactor};
pub use writer::{RecordingLimits, RecordingWriter};

/// The version of the format.
pub const FORMAT_VERSION: u32 = 1;

/// The maximum length of a line in bytes.
pub const MAX_ENTRY_BYTES: usize = 16 * 1024 * 1024;
