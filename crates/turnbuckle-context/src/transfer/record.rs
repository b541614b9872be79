//! One line of an export.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memory::{ItemKind, MemoryItem, NewItem};

/// What the first line says.
pub(super) const FORMAT: &str = "turnbuckle-memory";
/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ExportRecord {
    /// The first line.
    Header(ExportHeader),
    /// What follows is of this project.
    Project {
        /// Its folder.
        root: String,
    },
    /// What follows is shared between projects.
    Shared,
    /// A collection that was asked for by name.
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

impl ItemRecord {
    /// What would have been saved.
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
