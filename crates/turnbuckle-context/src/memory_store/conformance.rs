//! Conformance tests for implementations of [`MemoryStore`].
//!
//! A store passes if none of these functions panics. Each takes a closure that creates an empty store. Call them in a runtime of
//! several threads, on a thread that may block.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod branches;
mod candidates;
mod embeddings;
mod items;
mod operations;
mod partitions;
mod removal;
mod transfer;

use std::sync::Arc;

pub use self::{
    branches::branches, candidates::candidates, embeddings::embeddings, items::items,
    operations::operations, partitions::partitions, removal::removal, transfer::transfer,
};
use super::{MemoryStore, Partition, SavedItem};
use crate::{
    Owner,
    memory::{ItemKind, MemoryItem, NewItem, PreparedItem},
};

/// Runs all tests.
pub async fn memory_store(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    partitions(&make).await;
    items(&make).await;
    removal(&make).await;
    candidates(&make).await;
    embeddings(&make).await;
    branches(&make).await;
    operations(&make).await;
    transfer(&make).await;
}

/// The time of saving of all items, unless a test needs another one.
const TIME: i64 = 1_700_000_000_000;
const PROJECT: &str = "00000000000000aa";
const OTHER_PROJECT: &str = "00000000000000bb";

fn ada() -> Owner {
    Owner::for_user("ada")
}

/// Creates a project of an owner.
async fn create_project(store: &dyn MemoryStore, owner: &Owner, id: &str) -> Partition {
    let partition = Partition::project(owner, id);
    let root = format!("/home/{id}");
    store.create_project(&partition, &root).await.unwrap();
    partition
}

/// Saves an item at a time.
async fn save_at(
    store: &dyn MemoryStore,
    partition: &Partition,
    new_item: NewItem,
    time: i64,
) -> SavedItem {
    let prepared = PreparedItem::new(new_item, 0, time);
    store.save(partition, prepared).await.unwrap()
}

async fn save(store: &dyn MemoryStore, partition: &Partition, new_item: NewItem) -> SavedItem {
    save_at(store, partition, new_item, TIME).await
}

/// Returns the items of a kind, newest first.
async fn list(store: &dyn MemoryStore, partition: &Partition, kind: ItemKind) -> Vec<MemoryItem> {
    store.list(partition, kind, None, 1_000).await.unwrap()
}

/// Returns the bodies of the checkpoints that contain a term, newest first.
async fn matching(store: &dyn MemoryStore, partition: &Partition, term: &str) -> Vec<String> {
    let terms = [term.to_owned()];
    let listed = store.candidates(partition, ItemKind::Checkpoint, &terms);
    let mut listed = listed.await.unwrap();
    let selection = super::ItemSelection {
        numbers: &listed.lists.remove(0).numbers,
        branch: None,
        limit: usize::MAX,
    };
    let found = store.items(partition, selection).await.unwrap();
    found.into_iter().map(|item| item.body).collect()
}
