//! One file, read and made ready to be stored.

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

/// A file of more lines is data.
const MAX_LINES: usize = 200_000;
/// A file that was changed so shortly before it was read may change again without showing it.
const RECENT_CHANGE: Duration = Duration::from_secs(2);

/// A file that is to be read.
#[derive(Debug)]
pub(super) struct ReadJob {
    pub(super) path: String,
    pub(super) size: u64,
    /// The row and the hash of what was read the last time.
    pub(super) previous: Option<(i64, Vec<u8>)>,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// There is something new to store.
    Ready(Box<PreparedFile>),
    /// It is as it was; only its times have changed.
    Unchanged { row: i64, size: u64, modified: i64 },
    /// It cannot be read, so nothing is stored, and what was is removed.
    Skipped(SkipReason),
    /// It is gone.
    Gone,
}

/// A file as it is stored.
#[derive(Debug)]
pub(super) struct PreparedFile {
    pub(super) path: String,
    pub(super) size: u64,
    /// Nanoseconds; 0 if the file was too fresh for that to tell anything.
    pub(super) modified: i64,
    /// Empty if only the beginning was looked at.
    pub(super) hash: Vec<u8>,
    pub(super) language: &'static str,
    /// Why nothing of it is stored.
    pub(super) skipped: Option<SkipReason>,
    /// When it was read, in milliseconds.
    pub(super) indexed: i64,
    pub(super) chunks: Vec<PreparedChunk>,
    /// The rules that took something out.
    pub(super) redacted: BTreeMap<Arc<str>, usize>,
}

impl PreparedFile {
    /// About how many bytes it takes to store it.
    pub(super) fn weight(&self) -> usize {
        let weight = |chunk: &PreparedChunk| chunk.body.len() + chunk.words.idents.len() + 200;
        self.chunks.iter().map(weight).sum::<usize>() + 300
    }
}

/// A chunk as it is stored, and what it is found by.
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

/// The columns that are only searched.
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
    // Asked before reading: a change while we read shows as another time the next time.
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
    // Before it is cut: a key that goes on over a border would not be known in halves.
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

/// Of a text in an old code page at least so many hundredths are ASCII.
const MIN_ASCII_PERCENT: usize = 90;

/// Decodes UTF-8, UTF-16 with its mark, and what looks like the code page of Western Europe. `None` is no text.
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

/// The first bytes of a text, as many as fit without cutting a character.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok()
        .filter(|text| !text.contains('\0'))
        .map(Cow::Owned)
}

/// Source files of before 2000, whose comments have an accent now and then. Their signs are those of Unicode's beginning.
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
    fn text_of_every_usual_kind_is_read() {
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
    fn what_is_no_text_is_not_read() {
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
