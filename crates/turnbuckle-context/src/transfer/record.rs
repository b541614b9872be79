//! The export format: records, and reading of lines of limited length.

use std::{io, io::BufRead};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    memory::{ItemKind, MemoryItem, NewItem},
    memory_store::ExportEntry,
};

/// The format name in the header.
pub(super) const FORMAT: &str = "turnbuckle-memory";
/// The written version, and the newest supported one.
pub(super) const VERSION: u32 = 1;

/// One line of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ExportRecord {
    /// The first line of the export.
    Header(ExportHeader),
    /// Start of the records of a project.
    Project {
        /// The folder of the project.
        root: String,
    },
    /// Start of the records that projects share.
    Shared,
    /// A collection that was created by name.
    Collection {
        /// The branch, with `_` for `/`.
        branch: String,
        /// The size of its vectors.
        vector_size: u32,
    },
    /// A checkpoint, a remediation or a skill.
    Item(Box<ItemRecord>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExportHeader {
    pub(super) format: String,
    pub(super) version: u32,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) exported: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ItemRecord {
    pub(super) kind: ItemKind,
    #[serde(default)]
    pub(super) id: String,
    #[serde(default = "default_branch")]
    pub(super) branch: String,
    pub(super) title: String,
    pub(super) body: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) detail: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) meta: Map<String, Value>,
    #[serde(default = "default_confidence")]
    pub(super) confidence: f64,
    #[serde(default)]
    pub(super) usage: u32,
    #[serde(default)]
    pub(super) redacted: u32,
    #[serde(default)]
    pub(super) created: Option<i64>,
    #[serde(default)]
    pub(super) updated: Option<i64>,
}

impl From<MemoryItem> for ItemRecord {
    fn from(item: MemoryItem) -> Self {
        Self {
            kind: item.kind,
            id: item.id,
            branch: item.branch,
            title: item.title,
            body: item.body,
            detail: item.detail,
            tags: item.tags,
            meta: item.meta,
            confidence: item.confidence,
            usage: item.usage,
            redacted: item.redacted,
            created: Some(item.created),
            updated: Some(item.updated),
        }
    }
}

impl From<ExportEntry> for ExportRecord {
    fn from(entry: ExportEntry) -> Self {
        match entry {
            ExportEntry::Collection { label, vector_size } => Self::Collection {
                branch: label,
                vector_size,
            },
            ExportEntry::Item(item) => Self::Item(Box::new((*item).into())),
        }
    }
}

impl ItemRecord {
    /// Returns the item to save.
    pub(super) fn to_new_item(&self) -> NewItem {
        let new_item = match self.kind {
            ItemKind::Checkpoint => NewItem::checkpoint(&*self.body).title(&*self.title),
            ItemKind::Remediation => NewItem::remediation(&*self.title, &*self.body),
            ItemKind::Skill => NewItem::skill(&*self.title, "", &*self.body),
        };
        new_item
            .detail(&*self.detail)
            .branch(&*self.branch)
            .tags(self.tags.iter().cloned())
            .meta(self.meta.clone())
            .confidence(self.confidence)
    }
}

fn default_branch() -> String {
    "default".to_owned()
}

fn default_confidence() -> f64 {
    1.0
}

/// A line that was read.
pub(super) enum ReadLine<'l> {
    /// The complete line, without its line end.
    Whole(&'l [u8]),
    /// The line exceeds the limit.
    TooLong,
}

/// Reads lines of any length with a bounded buffer.
pub(super) struct LineReader<'r> {
    from: &'r mut dyn BufRead,
    buffer: Vec<u8>,
    max_bytes: usize,
    /// The number of the last line, counted from 1.
    pub(super) number: u64,
}

impl<'r> LineReader<'r> {
    pub(super) fn new(from: &'r mut dyn BufRead, max_bytes: usize) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            max_bytes,
            number: 0,
        }
    }

    /// Returns the next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<ReadLine<'_>>> {
        self.buffer.clear();
        let mut length = 0;
        loop {
            let available = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => done?,
            };
            if available.is_empty() && length == 0 {
                return Ok(None);
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if length + part.len() <= self.max_bytes {
                self.buffer.extend_from_slice(part);
            }
            length += part.len();
            let is_last = end.is_some() || available.is_empty();
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            // An empty line counts, too.
            if is_last {
                self.number += 1;
                let is_whole = length <= self.max_bytes;
                return Ok(Some(if is_whole {
                    ReadLine::Whole(self.buffer.trim_ascii())
                } else {
                    ReadLine::TooLong
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut text: &[u8], max_bytes: usize) -> Vec<Option<String>> {
        let mut lines = LineReader::new(&mut text, max_bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                ReadLine::Whole(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                ReadLine::TooLong => None,
            });
        }
        assert_eq!(lines.number, all.len() as u64);
        all
    }

    #[test]
    fn lines_are_read_with_and_without_line_end() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(b"", 9), []);
        assert_eq!(read(b"\n", 9), [some("")]);
        assert_eq!(read(b"a\r\n\nb", 9), [some("a"), some(""), some("b")]);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        let read = read(b"12345\n123456\n1", 5);
        assert_eq!(read, [Some("12345".to_owned()), None, Some("1".to_owned())]);
    }
}
