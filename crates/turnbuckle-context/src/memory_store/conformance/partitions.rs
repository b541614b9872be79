use std::sync::Arc;

use super::{OTHER_PROJECT, PROJECT, ada, create_project, list, matching, save};
use crate::{
    Owner,
    memory::{ItemKind, NewItem},
    memory_store::{
        MemoryStore, MemoryStoreError, OperationState, Partition, PartitionVersion, Scope,
    },
};

/// Checks the keys: owners and partitions.
pub async fn partitions(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    a_partition_without_data_is_empty(&*make().await).await;
    a_project_must_be_created(&*make().await).await;
    the_first_folder_of_a_project_stays(&*make().await).await;
    projects_are_listed_by_folder(&*make().await).await;
    owners_see_only_their_own_data(&*make().await).await;
    partitions_of_one_owner_are_separate(&*make().await).await;
    an_owner_finds_items_in_all_partitions(&*make().await).await;
    every_change_changes_the_version(&*make().await).await;
    used_bytes_count_for_their_owner(&*make().await).await;
}

async fn a_partition_without_data_is_empty(store: &dyn MemoryStore) {
    for partition in [
        Partition::project(&ada(), PROJECT),
        Partition::shared(&ada()),
    ] {
        assert!(
            list(store, &partition, ItemKind::Checkpoint)
                .await
                .is_empty()
        );
        assert!(matching(store, &partition, "word").await.is_empty());
        assert_eq!(store.root(&partition).await.unwrap(), None);
        assert_eq!(store.stats(&partition).await.unwrap().newest, None);
        let found = store.find(Scope::Partition(&partition), "ckpt_0000000000000000");
        assert_eq!(found.await.unwrap(), None);
    }
    assert!(store.versions(&ada()).await.unwrap().is_empty());
    assert!(store.projects(&ada()).await.unwrap().is_empty());
    assert_eq!(store.used_bytes(&ada(), 0).await.unwrap(), 0);
}

async fn a_project_must_be_created(store: &dyn MemoryStore) {
    let partition = Partition::project(&ada(), PROJECT);
    let running = store.record_operation(&partition, "index_repository", OperationState::Running);
    let error = running.await.unwrap_err();
    assert!(
        matches!(error, MemoryStoreError::UnknownProject),
        "{error:?}"
    );
    assert!(store.versions(&ada()).await.unwrap().is_empty());
    let shared = Partition::shared(&ada());
    save(store, &shared, NewItem::skill("deploy", "", "push")).await;
}

async fn the_first_folder_of_a_project_stays(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    store
        .create_project(&partition, "/elsewhere")
        .await
        .unwrap();
    let root = store.root(&partition).await.unwrap().unwrap();
    assert_eq!(root, format!("/home/{PROJECT}"));
}

async fn projects_are_listed_by_folder(store: &dyn MemoryStore) {
    create_project(store, &ada(), OTHER_PROJECT).await;
    create_project(store, &ada(), PROJECT).await;
    create_project(store, &Owner::for_user("bob"), "00000000000000cc").await;
    let projects = store.projects(&ada()).await.unwrap();
    let ids: Vec<_> = projects.iter().map(|project| &*project.id).collect();
    assert_eq!(ids, [PROJECT, OTHER_PROJECT]);
}

async fn owners_see_only_their_own_data(store: &dyn MemoryStore) {
    let (ada, bob) = (ada(), Owner::for_user("bob"));
    let of_ada = create_project(store, &ada, PROJECT).await;
    let of_bob = create_project(store, &bob, PROJECT).await;
    let saved = save(store, &of_ada, NewItem::checkpoint("the secret plan")).await;
    assert!(list(store, &of_bob, ItemKind::Checkpoint).await.is_empty());
    assert!(matching(store, &of_bob, "secret").await.is_empty());
    let id = &*saved.item.id;
    for scope in [Scope::Owner(&bob), Scope::Partition(&of_bob)] {
        assert_eq!(store.find(scope, id).await.unwrap(), None);
        let ids = store.ids(scope, ItemKind::Checkpoint, "ckpt_", 9);
        assert!(ids.await.unwrap().is_empty());
    }
    let operation = store.find_operation(&bob, &saved.operation);
    assert_eq!(operation.await.unwrap(), None);
    // The same text of another owner is another item.
    let again = save(store, &of_bob, NewItem::checkpoint("the secret plan")).await;
    assert!(again.is_new);
    assert_eq!(list(store, &of_ada, ItemKind::Checkpoint).await.len(), 1);
}

async fn partitions_of_one_owner_are_separate(store: &dyn MemoryStore) {
    let one = create_project(store, &ada(), PROJECT).await;
    let other = create_project(store, &ada(), OTHER_PROJECT).await;
    let shared = Partition::shared(&ada());
    let fix = || NewItem::remediation("linker failed", "install it");
    for partition in [&one, &other, &shared] {
        assert!(save(store, partition, fix()).await.is_new);
        assert_eq!(list(store, partition, ItemKind::Remediation).await.len(), 1);
    }
}

async fn an_owner_finds_items_in_all_partitions(store: &dyn MemoryStore) {
    let project = create_project(store, &ada(), PROJECT).await;
    let shared = Partition::shared(&ada());
    let in_project = save(store, &project, NewItem::checkpoint("done"))
        .await
        .item;
    let in_shared = save(store, &shared, NewItem::skill("deploy", "", "push"))
        .await
        .item;
    for (partition, item) in [(project, in_project), (shared, in_shared)] {
        let found = store.find(Scope::Owner(&ada()), &item.id).await.unwrap();
        assert_eq!(found, Some((partition, item.clone())));
        let prefix = &item.id[..item.id.len() - 2];
        let owner = ada();
        let ids = store.ids(Scope::Owner(&owner), item.kind, prefix, 9);
        assert_eq!(ids.await.unwrap(), [(item.created, item.id)]);
    }
}

/// Returns the version of a partition.
async fn version(store: &dyn MemoryStore, partition: &Partition) -> PartitionVersion {
    let versions = store.versions(partition.owner()).await.unwrap();
    let mut versions = versions.into_iter();
    versions.find(|(listed, _)| listed == partition).unwrap().1
}

async fn every_change_changes_the_version(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let first = version(store, &partition).await;
    list(store, &partition, ItemKind::Checkpoint).await;
    assert_eq!(
        version(store, &partition).await,
        first,
        "reading changes nothing"
    );
    let saved = save(store, &partition, NewItem::checkpoint("done"))
        .await
        .item;
    let second = version(store, &partition).await;
    store
        .create_collection(&partition, "main", 8)
        .await
        .unwrap();
    let third = version(store, &partition).await;
    let filter = crate::memory_store::ItemFilter::Id(saved.id);
    store.remove(&partition, &filter).await.unwrap();
    let fourth = version(store, &partition).await;
    assert!(first != second && second != third && third != fourth);
}

async fn used_bytes_count_for_their_owner(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save(store, &partition, NewItem::checkpoint("x ".repeat(5_000))).await;
    assert!(store.used_bytes(&ada(), 0).await.unwrap() > 10_000);
    let bob = Owner::for_user("bob");
    assert_eq!(store.used_bytes(&bob, 0).await.unwrap(), 0);
}
