use std::sync::Arc;

use super::{OTHER_PROJECT, PROJECT, TIME, ada, create_project, list, matching, save, save_at};
use crate::{
    memory::{ItemKind, NewItem},
    memory_store::{ItemFilter, MemoryStore, Partition, Scope},
};

/// Checks the removal of items.
pub async fn removal(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    a_removed_item_is_gone(&*make().await).await;
    items_are_removed_by_time_and_kind(&*make().await).await;
    many_items_are_removed(&*make().await).await;
    a_removed_partition_leaves_the_others(&*make().await).await;
}

async fn a_removed_item_is_gone(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let other = create_project(store, &ada(), OTHER_PROJECT).await;
    let item = save(store, &partition, NewItem::checkpoint("throw away"))
        .await
        .item;
    let kept = save(store, &partition, NewItem::checkpoint("keep"))
        .await
        .item;
    let filter = ItemFilter::Id(item.id.clone());
    assert_eq!(store.remove(&other, &filter).await.unwrap().items, 0);
    assert_eq!(store.remove(&partition, &filter).await.unwrap().items, 1);
    assert_eq!(store.remove(&partition, &filter).await.unwrap().items, 0);
    let owner = ada();
    let found = store.find(Scope::Owner(&owner), &item.id);
    assert_eq!(found.await.unwrap(), None);
    assert!(matching(store, &partition, "throw").await.is_empty());
    assert_eq!(list(store, &partition, ItemKind::Checkpoint).await, [kept]);
    assert!(
        save(store, &partition, NewItem::checkpoint("throw away"))
            .await
            .is_new
    );
    let nowhere = Partition::project(&ada(), "00000000000000cc");
    assert_eq!(store.remove(&nowhere, &filter).await.unwrap().items, 0);
}

async fn items_are_removed_by_time_and_kind(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    for time in 0..4 {
        let item = NewItem::checkpoint(format!("number {time}"));
        save_at(store, &partition, item, TIME + time).await;
    }
    save(store, &partition, NewItem::remediation("broken", "fix")).await;
    // Saved again later, so that it stays.
    save_at(store, &partition, NewItem::checkpoint("number 0"), TIME + 9).await;
    for (kind, removed, left) in [(Some(ItemKind::Checkpoint), 2, 1), (None, 1, 0)] {
        let filter = ItemFilter::Before {
            kind,
            time: TIME + 3,
        };
        assert_eq!(
            store.remove(&partition, &filter).await.unwrap().items,
            removed
        );
        let checkpoints = list(store, &partition, ItemKind::Checkpoint).await;
        let bodies: Vec<_> = checkpoints.iter().map(|item| &*item.body).collect();
        assert_eq!(bodies, ["number 3", "number 0"]);
        let fixes = list(store, &partition, ItemKind::Remediation).await;
        assert_eq!(fixes.len(), left);
    }
}

async fn many_items_are_removed(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    for number in 0..40 {
        save(
            store,
            &partition,
            NewItem::checkpoint(format!("number {number}")),
        )
        .await;
    }
    let filter = ItemFilter::Before {
        kind: None,
        time: i64::MAX,
    };
    assert_eq!(store.remove(&partition, &filter).await.unwrap().items, 40);
    assert!(matching(store, &partition, "number").await.is_empty());
}

async fn a_removed_partition_leaves_the_others(store: &dyn MemoryStore) {
    let one = create_project(store, &ada(), PROJECT).await;
    let other = create_project(store, &ada(), OTHER_PROJECT).await;
    let shared = Partition::shared(&ada());
    for partition in [&one, &other, &shared] {
        save(store, partition, NewItem::remediation("broken", "fix")).await;
        store.create_collection(partition, "main", 3).await.unwrap();
    }
    assert!(store.remove_partition(&one).await.unwrap());
    assert!(!store.remove_partition(&one).await.unwrap());
    assert_eq!(store.root(&one).await.unwrap(), None);
    assert!(matching(store, &one, "broken").await.is_empty());
    for partition in [&other, &shared] {
        assert_eq!(list(store, partition, ItemKind::Remediation).await.len(), 1);
    }
    let again = create_project(store, &ada(), PROJECT).await;
    assert!(list(store, &again, ItemKind::Remediation).await.is_empty());
    assert!(store.branches(&again).await.unwrap().collections.is_empty());
    assert!(store.remove_partition(&shared).await.unwrap());
    let left = store.versions(&ada()).await.unwrap();
    assert_eq!(left.len(), 2);
}
