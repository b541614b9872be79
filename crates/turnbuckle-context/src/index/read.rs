//! One file, read and made ready to be stored.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::chunk::chunks;
use super::generated::is_generated_text;
use super::language::language_of;
use super::text::decode;
use super::{LeftOut, modified};
use crate::Redactor;
use crate::database::now;
use crate::folder::Folder;
use crate::words::identifier_parts;

/// A file of more lines is data.
const MOST_LINES: usize = 200_000;
/// A file that was changed so shortly before it was read may change again without showing it.
const FRESH: Duration = Duration::from_secs(2);

/// A file that is to be read.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) path: String,
    pub(super) size: u64,
    /// The row and the hash of what was read the last time.
    pub(super) known: Option<(i64, Vec<u8>)>,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is something new to store.
    Ready(Box<Prepared>),
    /// It is as it was; only its times have changed.
    Same { row: i64, size: u64, modified: i64 },
    /// It cannot be read, so nothing is stored, and what was is removed.
    Nothing(LeftOut),
    /// It is gone.
    Gone,
}

/// A file as it is stored.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) path: String,
    pub(super) size: u64,
    /// Nanoseconds; 0 if the file was too fresh for that to tell anything.
    pub(super) modified: i64,
    /// Empty if only the beginning was looked at.
    pub(super) hash: Vec<u8>,
    pub(super) language: &'static str,
    /// Why nothing of it is stored.
    pub(super) left_out: Option<LeftOut>,
    /// When it was read, in milliseconds.
    pub(super) indexed: i64,
    pub(super) chunks: Vec<PreparedChunk>,
    /// The rules that took something out.
    pub(super) redacted: BTreeMap<Arc<str>, usize>,
}

impl Prepared {
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
    pub(super) words: Words,
}

/// The columns that are only searched.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) idents: String,
    pub(super) path: String,
    pub(super) defs: String,
}

/// Reads a file. What was read is as long as `most` at most.
pub(super) fn read(folder: &Folder, job: &Job, most: u64, redactor: &Redactor) -> Outcome {
    match try_to_read(folder, job, most, redactor) {
        Ok(outcome) => outcome,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::Gone,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Outcome::Nothing(LeftOut::NotAFile)
        }
        Err(_) => Outcome::Nothing(LeftOut::Unreadable),
    }
}

fn try_to_read(folder: &Folder, job: &Job, most: u64, redactor: &Redactor) -> io::Result<Outcome> {
    if !redactor.redact(&job.path).findings.is_empty() {
        return Ok(Outcome::Nothing(LeftOut::Name));
    }
    let file = folder.open_file(&job.path)?;
    // Asked before reading: a change while we read shows as another time the next time.
    let metadata = file.metadata()?;
    let (size, began) = (metadata.len(), SystemTime::now());
    let modified = trusted(modified(&metadata), began);
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or(0) + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Ok(Outcome::Nothing(LeftOut::Huge));
    }
    let hash = Sha256::digest(&bytes).to_vec();
    if let Some((row, _)) = job.known.as_ref().filter(|(_, known)| *known == hash) {
        return Ok(Outcome::Same {
            row: *row,
            size,
            modified,
        });
    }
    let mut prepared = Prepared {
        path: job.path.clone(),
        size,
        modified,
        hash,
        language: "",
        left_out: None,
        indexed: now(),
        chunks: Vec::new(),
        redacted: BTreeMap::new(),
    };
    prepare(&mut prepared, &bytes, redactor);
    Ok(Outcome::Ready(Box::new(prepared)))
}

fn trusted(modified: i64, now: SystemTime) -> i64 {
    let limit = now - FRESH;
    let limit = limit
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let is_old = i128::from(modified) < i128::try_from(limit.as_nanos()).unwrap_or(0);
    if is_old { modified } else { 0 }
}

fn prepare(prepared: &mut Prepared, bytes: &[u8], redactor: &Redactor) {
    let Some(text) = decode(bytes) else {
        prepared.left_out = Some(LeftOut::Binary);
        return;
    };
    prepared.language = language_of(&prepared.path, &text);
    prepared.left_out = if text.trim().is_empty() {
        Some(LeftOut::Empty)
    } else if is_generated_text(prepared.language, &text) {
        Some(LeftOut::Generated)
    } else if text.bytes().filter(|byte| *byte == b'\n').count() > MOST_LINES {
        Some(LeftOut::Huge)
    } else {
        None
    };
    if prepared.left_out.is_none() {
        prepare_chunks(prepared, &text, redactor);
    }
}

fn prepare_chunks(prepared: &mut Prepared, text: &str, redactor: &Redactor) {
    // Before it is cut: a key that goes on over a border would not be known in halves.
    let redacted = redactor.redact(text);
    redacted.count_into(&mut prepared.redacted);
    let path = format!("{} {}", prepared.path, identifier_parts(&prepared.path));
    let line = |line: usize| u32::try_from(line).expect("a file has at most `MOST_LINES`");
    let chunk = |chunk: super::chunk::Chunk<'_>| {
        let defs = chunk.defs.join(" ");
        PreparedChunk {
            first_line: line(chunk.first_line),
            last_line: line(chunk.last_line),
            symbol: chunk.symbol.to_owned(),
            kind: chunk.kind,
            body: chunk.body.to_owned(),
            words: Words {
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
