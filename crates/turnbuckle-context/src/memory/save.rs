//! Saving of items without duplicates.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    ItemKind, MemoryItem, NewItem, SimilarItem, error_fingerprint, item::new_id, limits,
    limits::ItemSource, near_duplicates, redact_item::ItemRedactor,
};
use crate::{
    ContextError, Redactor,
    memory_store::{ItemNumber, MemoryStore, Partition, SavedItem},
    owner::hex,
    storage::database::now,
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

/// Saves an item; it is stored durably when this returns.
///
/// If an item with the same kind, branch and text exists, its title, detail, tags and metadata are updated, and `is_new` is
/// false. A skill with the same name is replaced and keeps its id.
pub(crate) async fn save(
    store: &dyn MemoryStore,
    partition: &Partition,
    redactor: &Redactor,
    mut new_item: NewItem,
) -> Result<SaveOutcome, ContextError> {
    limits::validate(&new_item, ItemSource::Caller)?;
    let mut item_redactor = ItemRedactor::new(redactor);
    item_redactor.redact_item(&mut new_item);
    let redacted = item_redactor.into_counts();
    let prepared = PreparedItem::new(new_item, redacted.values().sum(), now());
    // Searched before the write transaction, so that other writers do not wait.
    let mut similar_to = near_duplicates::find_similar(store, partition, &prepared.item).await?;
    let SavedItem {
        item,
        is_new,
        operation,
    } = store.save(partition, prepared).await?;
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
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedItem {
    /// The item to insert if it is new.
    pub(crate) item: MemoryItem,
    pub(crate) words: String,
    pub(crate) hash: String,
}

impl PreparedItem {
    /// Prepares a redacted item.
    pub fn new(new_item: NewItem, redacted: u32, now: i64) -> Self {
        let hash = hash(&new_item);
        let item = MemoryItem {
            number: ItemNumber::default(),
            id: new_id(new_item.kind.prefix()),
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
        Self { item, words, hash }
    }

    /// Returns the item to insert if it is new. The store gives it a number.
    pub fn item(&self) -> &MemoryItem {
        &self.item
    }

    /// Returns the hash that identifies duplicates of the same kind.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns additional words for search: parts of identifiers, and hashes of errors.
    pub fn search_words(&self) -> &str {
        &self.words
    }

    /// Updates a stored duplicate with this item. Id, number, kind, use count and time of creation do not change.
    #[must_use]
    pub fn merge_into(self, first: MemoryItem) -> Self {
        let item = merge_items(first, self.item);
        let words = search_words(&item);
        Self {
            item,
            words,
            ..self
        }
    }

    /// Returns the kind and the result of the operation to record for a saved item.
    pub fn save_operation(saved: &MemoryItem) -> (String, Value) {
        let result = json!({ format!("{}_id", saved.kind): saved.id });
        (format!("{}_save", saved.kind), result)
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
