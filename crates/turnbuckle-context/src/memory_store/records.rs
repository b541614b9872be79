//! Parameters and results of the operations of a store.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    memory::{ItemKind, MemoryItem, PreparedItem},
    text::byte_prefix,
};

/// The number of an item, given by the store.
///
/// Of two items of one kind in one partition, the one that was created later has the greater number. The number may be used again
/// when its item is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemNumber(i64);

impl ItemNumber {
    /// Creates a number.
    pub fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number as an integer.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// Result of saving an item.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedItem {
    /// The stored item.
    pub item: MemoryItem,
    /// True if the item was created, as opposed to merged.
    pub is_new: bool,
    /// The id of the completed operation.
    pub operation: String,
}

/// A position in the list of a kind: that of the last item already listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The time of creation.
    pub created: i64,
    /// The number.
    pub number: ItemNumber,
}

/// Items to load.
#[derive(Clone, Copy, Debug)]
pub struct ItemSelection<'a> {
    /// The numbers, in the order of the result.
    pub numbers: &'a [ItemNumber],
    /// Only items on this branch.
    pub branch: Option<&'a str>,
    /// Maximum number of items.
    pub limit: usize,
}

/// Items to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemFilter {
    /// One item, by id.
    Id(String),
    /// Items last saved before a time.
    Before {
        /// Only items of this kind.
        kind: Option<ItemKind>,
        /// Milliseconds since 1970.
        time: i64,
    },
}

/// Result of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedItems {
    /// The number of removed items.
    pub items: u64,
    /// True if no trace of removed items is left in the storage.
    pub traceless: bool,
}

/// The branches of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBranches {
    /// The number of items on each branch.
    pub items: BTreeMap<String, u64>,
    /// The collections that were created by name: label and vector size.
    pub collections: BTreeMap<String, u64>,
    /// The size of the stored embeddings; 0 without embeddings.
    pub vector_size: u64,
}

/// A stored operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRecord {
    /// `op_` and 16 hexadecimal digits.
    pub id: String,
    /// The tool that was called.
    pub kind: String,
    /// The status.
    pub status: OperationStatus,
    /// The result, if completed.
    pub result: Option<Value>,
    /// The error message, if failed.
    pub error: Option<String>,
    /// Milliseconds since 1970.
    pub created: i64,
    /// Milliseconds since 1970.
    pub updated: i64,
}

impl OperationRecord {
    /// An operation without an update for this many milliseconds is considered failed.
    pub const STALE_AFTER_MS: i64 = 60 * 60 * 1_000;

    /// Marks a stale operation as failed: a killed process cannot store the failure itself.
    #[must_use]
    pub fn with_stale_as_failed(mut self, now: i64) -> Self {
        let is_open = matches!(
            self.status,
            OperationStatus::Pending | OperationStatus::Running
        );
        if is_open && now.saturating_sub(self.updated) > Self::STALE_AFTER_MS {
            self.status = OperationStatus::Failed;
            self.error = Some("no progress for an hour; start it again".to_owned());
        }
        self
    }
}

/// The status of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationStatus {
    /// Not started.
    Pending,
    /// In progress.
    Running,
    /// Done.
    Completed,
    /// Failed or cancelled.
    Failed,
}

/// The state to store for an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperationState<'a> {
    /// In progress.
    Running,
    /// Done, with its result.
    Completed(&'a Value),
    /// Failed, with an error message.
    Failed(&'a str),
}

/// An item without an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEmbedding {
    /// The item.
    pub number: ItemNumber,
    /// Its text for the model; see [`embedding_text`].
    pub text: String,
}

/// The number of texts with an embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingCoverage {
    /// Texts with an embedding.
    pub created: u64,
    /// All texts.
    pub total: u64,
}

/// Statistics about a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionStats {
    /// Number of items of each kind that has any.
    pub items: BTreeMap<ItemKind, u64>,
    /// The time of the last save, in milliseconds since 1970.
    pub newest: Option<i64>,
}

/// An entry of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportEntry {
    /// A collection that was created by name.
    Collection {
        /// The branch, with `_` for `/`.
        label: String,
        /// The size of its vectors.
        vector_size: u32,
    },
    /// An item.
    Item(Box<MemoryItem>),
}

/// Result of exporting a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionExport {
    /// The number of exported items.
    pub items: u64,
    /// Descriptions of damaged parts that are not in the export.
    pub lost: Vec<String>,
}

/// An entry of an import.
#[derive(Debug)]
pub enum ImportEntry {
    /// A collection. If it exists, it does not change.
    Collection {
        /// The branch, with `_` for `/`.
        label: String,
        /// The size of its vectors.
        vector_size: u32,
    },
    /// An item.
    Item {
        /// The item, with the times of the export.
        item: Box<PreparedItem>,
        /// The id to use if the item is new and no other item has it.
        id: Option<String>,
    },
}

/// Result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// New items.
    pub new: u64,
    /// Existing items that were updated.
    pub updated: u64,
    /// Existing items that are as new as the imported ones.
    pub unchanged: u64,
}

/// Maximum number of bytes of a text sent to a model; most models read less.
pub(crate) const MAX_EMBEDDED_BYTES: usize = 6_000;

/// Returns the text of an item for a model: title, detail and body, truncated.
///
/// The title comes first, so that truncation does not remove it.
pub fn embedding_text(parts: [&str; 3]) -> String {
    let mut text = String::new();
    for part in parts {
        let room = MAX_EMBEDDED_BYTES.saturating_sub(text.len());
        let part = byte_prefix(part, room);
        if !part.trim().is_empty() {
            text.push_str(part);
            text.push('\n');
        }
    }
    text
}
