use std::sync::Arc;

use super::{PROJECT, ada, create_project, list, save};
use crate::{
    memory::{ItemKind, NewItem},
    memory_store::{MemoryStore, MemoryStoreError, Partition},
};

/// Checks branches and collections.
pub async fn branches(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    items_are_counted_by_branch(&*make().await).await;
    a_collection_is_created_and_resized(&*make().await).await;
    a_removed_branch_leaves_the_others(&*make().await).await;
}

async fn save_on(store: &dyn MemoryStore, partition: &Partition, branch: &str, body: &str) {
    save(store, partition, NewItem::checkpoint(body).branch(branch)).await;
}

async fn items_are_counted_by_branch(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save_on(store, &partition, "main", "one").await;
    save_on(store, &partition, "main", "two").await;
    save_on(store, &partition, "a/b", "one").await;
    let branches = store.branches(&partition).await.unwrap();
    let counts: Vec<_> = branches.items.into_iter().collect();
    assert_eq!(counts, [("a/b".to_owned(), 1), ("main".to_owned(), 2)]);
    assert!(branches.collections.is_empty());
    assert_eq!(branches.vector_size, 0);
}

async fn a_collection_is_created_and_resized(store: &dyn MemoryStore) {
    let nowhere = Partition::project(&ada(), PROJECT);
    let error = store
        .create_collection(&nowhere, "main", 3)
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryStoreError::UnknownProject),
        "{error:?}"
    );
    let partition = create_project(store, &ada(), PROJECT).await;
    for size in [3, 384] {
        store
            .create_collection(&partition, "a_b", size)
            .await
            .unwrap();
        let branches = store.branches(&partition).await.unwrap();
        let collections: Vec<_> = branches.collections.into_iter().collect();
        assert_eq!(collections, [("a_b".to_owned(), size)]);
    }
}

async fn a_removed_branch_leaves_the_others(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    for (branch, body) in [
        ("a/b", "one"),
        ("a/b", "two"),
        ("a_b", "three"),
        ("c", "four"),
    ] {
        save_on(store, &partition, branch, body).await;
    }
    store.create_collection(&partition, "a_b", 3).await.unwrap();
    // The other branch with this label keeps the collection.
    for (branch, removed, collections, left) in [
        (Some("a/b"), 2, 1, 2),
        (Some("a_b"), 1, 0, 1),
        (None, 0, 0, 1),
    ] {
        let count = store
            .remove_branch(&partition, "a_b", branch)
            .await
            .unwrap();
        assert_eq!(count, removed);
        let branches = store.branches(&partition).await.unwrap();
        assert_eq!(branches.collections.len(), collections);
        let items = list(store, &partition, ItemKind::Checkpoint).await;
        assert_eq!(items.len(), left);
    }
}
