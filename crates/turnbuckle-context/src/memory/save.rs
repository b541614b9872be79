//! Saving, so that the same thing is kept once.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::clean::Cleaner;
use super::limits::{self, Source};
use super::stored::{self, Hidden};
use super::{Draft, Item, Kind, Similar, patterns, similar};
use crate::Redactor;
use crate::database::now;
use crate::owner::hex;
use crate::{ContextError, Database, operations, words};

/// What came of saving something.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// What is kept now.
    pub item: Item,
    /// Whether it was not there before.
    pub is_new: bool,
    /// What says nearly the same, nearest first. Nothing is merged.
    pub similar_to: Vec<Similar>,
    /// How many secrets were taken out, by the rule that found them.
    pub redacted: BTreeMap<String, u32>,
    /// The completed operation, written in the same transaction; see [`operations`](crate::operations).
    pub operation: String,
}

/// Saves something; it is on the disk when this returns.
///
/// The same thing again (same kind, branch and text) returns the first with `is_new` false: its title, detail, tags and
/// metadata are brought up to date. A skill of the same name is replaced and keeps its id.
pub fn save(
    database: &Database,
    redactor: &Redactor,
    mut draft: Draft,
) -> Result<Saved, ContextError> {
    limits::check(&draft, Source::Caller)?;
    let mut cleaner = Cleaner::new(redactor);
    cleaner.draft(&mut draft);
    let redacted = cleaner.found();
    let entry = Entry::new(draft, redacted.values().sum(), now());
    // Looked for before the lock is taken: others need not wait for it.
    let mut similar_to = similar::to(database, &entry.item)?;
    let (item, is_new, operation) = database.write(|db| {
        let (item, is_new) = entry.keep(db)?;
        let result = json!({ format!("{}_id", item.kind): item.id });
        let operation = operations::record(db, &format!("{}_save", item.kind), &result)?;
        Ok((item, is_new, operation))
    })?;
    similar_to.retain(|similar| similar.id != item.id);
    // They may have been saved when fewer rules were known.
    for similar in &mut similar_to {
        similar.title = redactor.redact(&similar.title).text.into_owned();
    }
    Ok(Saved {
        item,
        is_new,
        similar_to,
        redacted,
        operation,
    })
}

/// Something without secrets, ready to be kept.
pub(crate) struct Entry {
    /// What it becomes if it is new.
    pub(crate) item: Item,
    hidden: Hidden,
}

impl Entry {
    /// Makes a draft an entry. The draft has lost its secrets before.
    pub(crate) fn new(draft: Draft, redacted: u32, now: i64) -> Self {
        let hash = hash(&draft);
        let item = Item {
            row: 0,
            id: stored::new_id(draft.kind.prefix()),
            kind: draft.kind,
            branch: draft.branch,
            title: draft.title,
            body: draft.body,
            detail: draft.detail,
            tags: each_once(draft.tags),
            meta: draft.meta,
            confidence: draft.confidence,
            usage: 0,
            redacted,
            created: now,
            updated: now,
        };
        let words = words_of(&item);
        let hidden = Hidden { words, hash };
        Self { item, hidden }
    }

    /// What is kept already and is the same.
    pub(crate) fn known(&self, db: &Connection) -> rusqlite::Result<Option<Item>> {
        stored::by_hash(db, self.item.kind, &self.hidden.hash)
    }

    /// Keeps it, or brings up to date what is there already. Says whether it is new.
    pub(crate) fn keep(self, db: &Connection) -> rusqlite::Result<(Item, bool)> {
        let known = self.known(db)?;
        let Self { mut item, hidden } = self;
        let Some(first) = known else {
            stored::insert(db, &mut item, &hidden)?;
            return Ok((item, true));
        };
        let item = brought_up_to_date(first, item);
        let hidden = Hidden {
            words: words_of(&item),
            ..hidden
        };
        stored::update(db, &item, &hidden)?;
        Ok((item, false))
    }
}

/// The name of a skill as it is compared: small letters and digits, with one `-` between words.
pub(crate) fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|sign: char| !sign.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The hash of a skill that is called this.
pub(crate) fn skill_hash(name: &str) -> String {
    digest(&[Kind::Skill.as_str(), &slug(name)])
}

/// What makes two things the same: the text but for white space at the ends of lines, on one branch.
///
/// The branch counts because a branch can be removed with all that was saved on it.
fn hash(draft: &Draft) -> String {
    let kind = draft.kind.as_str();
    match draft.kind {
        Kind::Checkpoint => digest(&[kind, &draft.branch, &plain(&draft.body)]),
        Kind::Remediation => {
            let (error, solution) = (plain(&draft.title), plain(&draft.body));
            digest(&[kind, &draft.branch, &error, &solution])
        }
        Kind::Skill => skill_hash(&draft.title),
    }
}

fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize()[..16])
}

/// What it can be found by beside its words.
fn words_of(item: &Item) -> String {
    let mut words = words::identifier_parts(&item.title);
    for text in [&item.body, &item.detail] {
        words.push(' ');
        words.push_str(&words::identifier_parts(text));
    }
    if item.kind == Kind::Remediation {
        for print in patterns::prints(&item.title) {
            words.push(' ');
            words.push_str(&print);
        }
    }
    words
}

/// The first, with what the second says of it. A skill takes all from the second.
fn brought_up_to_date(mut first: Item, second: Item) -> Item {
    let says_nothing = second.kind == Kind::Checkpoint && second.title == Draft::NO_SUMMARY;
    if !says_nothing {
        first.title = second.title;
    }
    if second.kind == Kind::Skill {
        first.detail = second.detail;
        first.tags = second.tags;
        first.meta = second.meta;
    } else {
        if !second.detail.is_empty() {
            first.detail = second.detail;
        }
        first.tags = each_once([second.tags, first.tags].concat());
        first.tags.truncate(limits::MOST_TAGS);
        add_what_fits(&mut first.meta, second.meta);
    }
    first.body = second.body;
    first.confidence = second.confidence;
    first.redacted = second.redacted;
    first.updated = first.updated.max(second.updated);
    first
}

/// Adds the new metadata; if that is too much, only the new is kept.
fn add_what_fits(meta: &mut Map<String, Value>, new: Map<String, Value>) {
    let known = new.keys().filter(|key| meta.contains_key(*key)).count();
    if meta.len() + new.len() - known > limits::MOST_META {
        meta.clear();
    }
    meta.extend(new);
}

fn each_once(tags: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        let tag = tag.trim();
        if !kept.iter().any(|known| known.eq_ignore_ascii_case(tag)) {
            kept.push(tag.to_owned());
        }
    }
    kept
}
