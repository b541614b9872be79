//! Saving of items without duplicates.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    ItemKind, MemoryItem, NewItem, SimilarItem, error_fingerprint, limits, limits::ItemSource,
    near_duplicates, redact_item::ItemRedactor, rows, rows::HiddenColumns,
};
use crate::{
    ContextError, Database, Redactor,
    owner::hex,
    storage::{database::now, operations},
    text::tokenize,
};

/// Result of saving an item.
#[derive(Clone, Debug, PartialEq)]
pub struct SaveOutcome {
    /// The stored item.
    pub item: MemoryItem,
    /// True if the item was created, as opposed to updated.
    pub is_new: bool,
    /// Near duplicates, most similar first. They are not merged.
    pub similar_to: Vec<SimilarItem>,
    /// Number of redactions, by rule.
    pub redacted: BTreeMap<String, u32>,
    /// The completed operation, written in the same transaction.
    pub operation: String,
}

/// Saves an item; it is on the disk when this returns.
///
/// If an item with the same kind, branch and text exists, its title, detail, tags and metadata are updated, and `is_new` is
/// false. A skill with the same name is replaced and keeps its id.
pub fn save(
    database: &Database,
    redactor: &Redactor,
    mut new_item: NewItem,
) -> Result<SaveOutcome, ContextError> {
    limits::validate(&new_item, ItemSource::Caller)?;
    let mut item_redactor = ItemRedactor::new(redactor);
    item_redactor.redact_item(&mut new_item);
    let redacted = item_redactor.into_counts();
    let prepared = PreparedItem::new(new_item, redacted.values().sum(), now());
    // Searched before the write transaction, so that other writers do not wait.
    let mut similar_to = near_duplicates::find_similar(database, &prepared.item)?;
    let (item, is_new, operation) = database.write(|db| {
        let (item, is_new) = prepared.store(db)?;
        let result = json!({ format!("{}_id", item.kind): item.id });
        let operation = operations::record(db, &format!("{}_save", item.kind), &result)?;
        Ok((item, is_new, operation))
    })?;
    similar_to.retain(|similar| similar.id != item.id);
    // Older items may contain secrets that newer rules find.
    for similar in &mut similar_to {
        similar.title = redactor.redact(&similar.title).text.into_owned();
    }
    Ok(SaveOutcome {
        item,
        is_new,
        similar_to,
        redacted,
        operation,
    })
}

/// A redacted item, ready to be stored.
pub(crate) struct PreparedItem {
    /// The item to insert if it is new.
    pub(crate) item: MemoryItem,
    hidden: HiddenColumns,
}

impl PreparedItem {
    /// Prepares a redacted item.
    pub(crate) fn new(new_item: NewItem, redacted: u32, now: i64) -> Self {
        let hash = hash(&new_item);
        let item = MemoryItem {
            row: 0,
            id: rows::new_id(new_item.kind.prefix()),
            kind: new_item.kind,
            branch: new_item.branch,
            title: new_item.title,
            body: new_item.body,
            detail: new_item.detail,
            tags: dedup_tags(new_item.tags),
            meta: new_item.meta,
            confidence: new_item.confidence,
            usage: 0,
            redacted,
            created: now,
            updated: now,
        };
        let words = search_words(&item);
        let hidden = HiddenColumns { words, hash };
        Self { item, hidden }
    }

    /// Returns the existing duplicate.
    pub(crate) fn find_existing(&self, db: &Connection) -> rusqlite::Result<Option<MemoryItem>> {
        rows::find_by_hash(db, self.item.kind, &self.hidden.hash)
    }

    /// Inserts the item or updates its duplicate. Returns whether it is new.
    pub(crate) fn store(self, db: &Connection) -> rusqlite::Result<(MemoryItem, bool)> {
        let known = self.find_existing(db)?;
        let Self { mut item, hidden } = self;
        let Some(first) = known else {
            rows::insert(db, &mut item, &hidden)?;
            return Ok((item, true));
        };
        let item = merge_items(first, item);
        let hidden = HiddenColumns {
            words: search_words(&item),
            ..hidden
        };
        rows::update(db, &item, &hidden)?;
        Ok((item, false))
    }
}

/// Returns the compared form of a skill name: lower-case letters and digits, with one `-` between words.
pub(crate) fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|sign: char| !sign.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// Returns the hash of a skill with this name.
pub(crate) fn skill_hash(name: &str) -> String {
    digest(&[ItemKind::Skill.as_str(), &slug(name)])
}

/// Returns the hash that identifies duplicates: of the branch and the text without trailing white space.
///
/// The branch is included because deleting a branch deletes its items.
fn hash(new_item: &NewItem) -> String {
    let kind = new_item.kind.as_str();
    match new_item.kind {
        ItemKind::Checkpoint => digest(&[kind, &new_item.branch, &normalize(&new_item.body)]),
        ItemKind::Remediation => {
            let (error, solution) = (normalize(&new_item.title), normalize(&new_item.body));
            digest(&[kind, &new_item.branch, &error, &solution])
        }
        ItemKind::Skill => skill_hash(&new_item.title),
    }
}

fn normalize(text: &str) -> String {
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

/// Returns additional search words: parts of identifiers and error hashes.
fn search_words(item: &MemoryItem) -> String {
    let mut words = tokenize::identifier_parts(&item.title);
    for text in [&item.body, &item.detail] {
        words.push(' ');
        words.push_str(&tokenize::identifier_parts(text));
    }
    if item.kind == ItemKind::Remediation {
        for print in error_fingerprint::fingerprint_hashes(&item.title) {
            words.push(' ');
            words.push_str(&print);
        }
    }
    words
}

/// Updates the first item with the second. A skill is replaced completely.
fn merge_items(mut first: MemoryItem, second: MemoryItem) -> MemoryItem {
    let says_nothing =
        second.kind == ItemKind::Checkpoint && second.title == NewItem::DEFAULT_SUMMARY;
    if !says_nothing {
        first.title = second.title;
    }
    if second.kind == ItemKind::Skill {
        first.detail = second.detail;
        first.tags = second.tags;
        first.meta = second.meta;
    } else {
        if !second.detail.is_empty() {
            first.detail = second.detail;
        }
        first.tags = dedup_tags([second.tags, first.tags].concat());
        first.tags.truncate(limits::MAX_TAGS);
        merge_metadata(&mut first.meta, second.meta);
    }
    first.body = second.body;
    first.confidence = second.confidence;
    first.redacted = second.redacted;
    first.updated = first.updated.max(second.updated);
    first
}

/// Adds the new metadata; if the limit is exceeded, only the new is kept.
fn merge_metadata(meta: &mut Map<String, Value>, new: Map<String, Value>) {
    let known = new.keys().filter(|key| meta.contains_key(*key)).count();
    if meta.len() + new.len() - known > limits::MAX_METADATA_ENTRIES {
        meta.clear();
    }
    meta.extend(new);
}

fn dedup_tags(tags: Vec<String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        let tag = tag.trim();
        if !distinct.iter().any(|known| known.eq_ignore_ascii_case(tag)) {
            distinct.push(tag.to_owned());
        }
    }
    distinct
}
