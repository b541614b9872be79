//! The last lines of a recording in memory, within limits.

use std::{collections::VecDeque, sync::Arc};

/// The limits of a [`RecordingBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferLimits {
    /// The maximum size of all lines in bytes.
    pub bytes: usize,
    /// The maximum number of lines.
    pub entries: usize,
}

impl Default for BufferLimits {
    /// 64 MiB or 100,000 entries.
    fn default() -> Self {
        Self {
            bytes: 64 * 1024 * 1024,
            entries: 100_000,
        }
    }
}

/// The last lines of a recording, for readers that catch up by number. The oldest are dropped first.
#[derive(Debug, Default)]
pub struct RecordingBuffer {
    limits: BufferLimits,
    lines: VecDeque<(u64, Arc<[u8]>)>,
    bytes: usize,
    /// The number of the newest line that was dropped; 0 if none was.
    last_dropped: u64,
}

/// The lines after a number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferedLines {
    /// How many lines after the number were dropped.
    pub dropped: u64,
    /// The lines that are left.
    pub lines: Vec<Arc<[u8]>>,
}

impl RecordingBuffer {
    /// Creates an empty buffer.
    pub fn new(limits: BufferLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds the line of an entry. Numbers must increase by one.
    pub fn push(&mut self, seq: u64, line: impl Into<Arc<[u8]>>) {
        let line = line.into();
        self.bytes += line.len();
        self.lines.push_back((seq, line));
        while self.bytes > self.limits.bytes || self.lines.len() > self.limits.entries {
            let Some((seq, line)) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= line.len();
            self.last_dropped = seq;
        }
    }

    /// Returns the lines after a number; 0 for all.
    pub fn after(&self, seq: u64) -> BufferedLines {
        let start = self.lines.partition_point(|(number, _)| *number <= seq);
        let lines = self.lines.range(start..);
        BufferedLines {
            dropped: self.last_dropped.saturating_sub(seq),
            lines: lines.map(|(_, line)| Arc::clone(line)).collect(),
        }
    }
}
