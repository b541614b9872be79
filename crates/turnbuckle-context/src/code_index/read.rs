//! Reads one file and prepares it for storage.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io,
    io::Read as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use sha2::{Digest as _, Sha256};

use super::{
    SkipReason, chunk::chunks, generated::is_generated_text, language::language_of, modified_nanos,
};
use crate::{
    Redactor,
    storage::{database::now, dir_handle::DirHandle},
    text::tokenize::identifier_parts,
};

/// Maximum number of lines; a file with more is data.
const MAX_LINES: usize = 200_000;
/// A file modified this recently may change again without a new modification time.
const RECENT_CHANGE: Duration = Duration::from_secs(2);

/// A file to read.
#[derive(Debug)]
pub(super) struct ReadJob {
    pub(super) path: String,
    pub(super) size: u64,
    /// The row and hash of the previous version.
    pub(super) previous: Option<(i64, Vec<u8>)>,
}

/// The result of reading a file.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// The file is new or changed.
    Ready(Box<PreparedFile>),
    /// The contents are unchanged; only the times changed.
    Unchanged { row: i64, size: u64, modified: i64 },
    /// The file cannot be read; its previous version is removed.
    Skipped(SkipReason),
    /// The file no longer exists.
    Gone,
}

/// A file ready to be stored.
#[derive(Debug)]
pub(super) struct PreparedFile {
    pub(super) path: String,
    pub(super) size: u64,
    /// Nanoseconds since 1970; 0 if the file was modified too recently to rely on it.
    pub(super) modified: i64,
    /// Empty if the file was not read completely.
    pub(super) hash: Vec<u8>,
    pub(super) language: &'static str,
    /// The reason why its text is not stored.
    pub(super) skipped: Option<SkipReason>,
    /// The time of reading, in milliseconds since 1970.
    pub(super) indexed: i64,
    pub(super) chunks: Vec<PreparedChunk>,
    /// Number of redactions, by rule.
    pub(super) redacted: BTreeMap<Arc<str>, usize>,
}

impl PreparedFile {
    /// Returns the approximate number of bytes in the database.
    pub(super) fn weight(&self) -> usize {
        let weight = |chunk: &PreparedChunk| chunk.body.len() + chunk.words.idents.len() + 200;
        self.chunks.iter().map(weight).sum::<usize>() + 300
    }
}

/// A chunk ready to be stored, with its search columns.
#[derive(Debug)]
pub(super) struct PreparedChunk {
    pub(super) first_line: u32,
    pub(super) last_line: u32,
    pub(super) symbol: String,
    pub(super) kind: &'static str,
    pub(super) defs: String,
    pub(super) body: String,
    pub(super) words: SearchColumns,
}

/// Columns that are only used for search.
#[derive(Debug)]
pub(super) struct SearchColumns {
    pub(super) idents: String,
    pub(super) path: String,
    pub(super) defs: String,
}

/// Reads a file. Files larger than `max_bytes` are skipped.
pub(super) fn read(
    folder: &DirHandle,
    job: &ReadJob,
    max_bytes: u64,
    redactor: &Redactor,
) -> ReadOutcome {
    match read_file(folder, job, max_bytes, redactor) {
        Ok(outcome) => outcome,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ReadOutcome::Gone,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            ReadOutcome::Skipped(SkipReason::NotAFile)
        }
        Err(_) => ReadOutcome::Skipped(SkipReason::Unreadable),
    }
}

fn read_file(
    folder: &DirHandle,
    job: &ReadJob,
    max_bytes: u64,
    redactor: &Redactor,
) -> io::Result<ReadOutcome> {
    if !redactor.redact(&job.path).findings.is_empty() {
        return Ok(ReadOutcome::Skipped(SkipReason::InvalidName));
    }
    let file = folder.open_file(&job.path)?;
    // Taken before reading: a change during the read gives another time on the next run.
    let metadata = file.metadata()?;
    let (size, started) = (metadata.len(), SystemTime::now());
    let modified = trusted_mtime(modified_nanos(&metadata), started);
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(max_bytes)).unwrap_or(0) + 1);
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Ok(ReadOutcome::Skipped(SkipReason::TooLarge));
    }
    let hash = Sha256::digest(&bytes).to_vec();
    if let Some((row, _)) = job
        .previous
        .as_ref()
        .filter(|(_, previous)| *previous == hash)
    {
        return Ok(ReadOutcome::Unchanged {
            row: *row,
            size,
            modified,
        });
    }
    let mut prepared = PreparedFile {
        path: job.path.clone(),
        size,
        modified,
        hash,
        language: "",
        skipped: None,
        indexed: now(),
        chunks: Vec::new(),
        redacted: BTreeMap::new(),
    };
    prepare(&mut prepared, &bytes, redactor);
    Ok(ReadOutcome::Ready(Box::new(prepared)))
}

fn trusted_mtime(modified: i64, now: SystemTime) -> i64 {
    let limit = now - RECENT_CHANGE;
    let limit = limit
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let is_old = i128::from(modified) < i128::try_from(limit.as_nanos()).unwrap_or(0);
    if is_old { modified } else { 0 }
}

fn prepare(prepared: &mut PreparedFile, bytes: &[u8], redactor: &Redactor) {
    let Some(text) = decode(bytes) else {
        prepared.skipped = Some(SkipReason::Binary);
        return;
    };
    prepared.language = language_of(&prepared.path, &text);
    prepared.skipped = if text.trim().is_empty() {
        Some(SkipReason::Empty)
    } else if is_generated_text(prepared.language, &text) {
        Some(SkipReason::Generated)
    } else if text.bytes().filter(|byte| *byte == b'\n').count() > MAX_LINES {
        Some(SkipReason::TooLarge)
    } else {
        None
    };
    if prepared.skipped.is_none() {
        prepare_chunks(prepared, &text, redactor);
    }
}

fn prepare_chunks(prepared: &mut PreparedFile, text: &str, redactor: &Redactor) {
    // Redact before splitting: a secret that crosses a chunk boundary would not be recognized.
    let redacted = redactor.redact(text);
    redacted.count_into(&mut prepared.redacted);
    let path = format!("{} {}", prepared.path, identifier_parts(&prepared.path));
    let line = |line: usize| u32::try_from(line).expect("a file has at most `MAX_LINES`");
    let chunk = |chunk: super::chunk::TextChunk<'_>| {
        let defs = chunk.defs.join(" ");
        PreparedChunk {
            first_line: line(chunk.first_line),
            last_line: line(chunk.last_line),
            symbol: chunk.symbol.to_owned(),
            kind: chunk.kind,
            body: chunk.body.to_owned(),
            words: SearchColumns {
                idents: identifier_parts(chunk.body),
                path: path.clone(),
                defs: format!("{defs} {}", identifier_parts(&defs)),
            },
            defs,
        }
    };
    prepared.chunks = chunks(prepared.language, &redacted.text)
        .into_iter()
        .map(chunk)
        .collect();
}

/// Minimum percentage of ASCII in a Latin-1 text.
const MIN_ASCII_PERCENT: usize = 90;

/// Decodes UTF-8, UTF-16 with a byte order mark, and probable Latin-1. Returns `None` for binary data.
pub(super) fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => decode(rest),
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        _ if bytes.contains(&0) => None,
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Some(Cow::Borrowed(text)),
            Err(_) => decode_latin1(bytes).map(Cow::Owned),
        },
    }
    .map(normalize_line_ends)
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok()
        .filter(|text| !text.contains('\0'))
        .map(Cow::Owned)
}

/// Decodes Latin-1: old source files with a few accents in comments. Its code points are those of Unicode.
fn decode_latin1(bytes: &[u8]) -> Option<String> {
    let ascii = bytes.iter().filter(|byte| byte.is_ascii()).count();
    let is_control =
        |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let is_text = ascii * 100 >= bytes.len() * MIN_ASCII_PERCENT && !bytes.iter().any(is_control);
    is_text.then(|| bytes.iter().map(|byte| char::from(*byte)).collect())
}

fn normalize_line_ends(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains("\r\n") {
        return Cow::Owned(text.replace("\r\n", "\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_encodings_are_decoded() {
        let table: [(&[u8], &str); 6] = [
            (b"plain", "plain"),
            ("é\n".as_bytes(), "é\n"),
            (b"\xef\xbb\xbfmark", "mark"),
            (b"\xff\xfea\0\r\0\n\0", "a\n"),
            (b"\xfe\xff\0a\0b", "ab"),
            (
                b"/* the caf\xe9 of the author */\r\n",
                "/* the café of the author */\n",
            ),
        ];
        for (bytes, text) in table {
            assert_eq!(decode(bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn binary_data_is_rejected() {
        let table: [&[u8]; 5] = [
            b"a\0b",
            b"\x89PNG\r\n\x1a\n",
            b"\xe4\xb8\xe4\xb8\xe4",
            b"\xff\xfe\0\xd8a\0",
            b"\xff\xfe\0\0",
        ];
        for bytes in table {
            assert_eq!(decode(bytes), None, "{bytes:x?}");
        }
    }
}
