use std::sync::Arc;

use serde_json::{Map, json};

use super::{PROJECT, TIME, ada, create_project, list, matching, save, save_at};
use crate::{
    memory::{ItemKind, NewItem, PreparedItem},
    memory_store::{
        ItemNumber, ItemSelection, ListPosition, MemoryStore, OperationStatus, Partition, Scope,
        block_on,
    },
};

/// Checks saving, merging and reading of items.
pub async fn items(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    a_saved_item_is_read_as_it_was(&*make().await).await;
    a_duplicate_is_merged(&*make().await).await;
    a_skill_is_replaced_by_one_of_the_same_name(&*make().await).await;
    saving_records_an_operation(&*make().await).await;
    concurrent_saves_of_one_item_create_one(make().await).await;
    pages_neither_repeat_nor_omit_items(&*make().await).await;
    ids_and_titles_are_listed_newest_first(&*make().await).await;
    a_selection_keeps_its_order(&*make().await).await;
    uses_are_counted(&*make().await).await;
    statistics_count_items_by_kind(&*make().await).await;
}

async fn a_saved_item_is_read_as_it_was(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let new_item = NewItem::remediation("E0502: cannot borrow `x`", "clone it\n\0 ünïcode 🦀")
        .detail("in a loop")
        .branch("feature/x")
        .tags(["rust", "borrow \"checker\""])
        .meta(Map::from_iter([(
            "a".to_owned(),
            json!({ "b": [1, null] }),
        )]))
        .confidence(0.25);
    let saved = save(store, &partition, new_item.clone()).await;
    assert!(saved.is_new);
    let item = saved.item;
    assert_eq!((item.created, item.updated), (TIME, TIME));
    assert_eq!(
        (item.title.clone(), item.body.clone()),
        (new_item.title, new_item.body)
    );
    assert_eq!(
        (item.detail.clone(), item.branch.clone()),
        (new_item.detail, new_item.branch)
    );
    assert_eq!(
        (item.tags.clone(), item.meta.clone()),
        (new_item.tags, new_item.meta)
    );
    assert_eq!(item.confidence, 0.25);
    let found = store
        .find(Scope::Partition(&partition), &item.id)
        .await
        .unwrap();
    assert_eq!(found, Some((partition.clone(), item.clone())));
    assert_eq!(list(store, &partition, ItemKind::Remediation).await, [item]);
    assert!(
        list(store, &partition, ItemKind::Checkpoint)
            .await
            .is_empty()
    );
}

async fn a_duplicate_is_merged(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let first = NewItem::checkpoint("half done")
        .title("early words")
        .tags(["a"]);
    let first = save_at(store, &partition, first, TIME).await.item;
    store.count_use(&partition, &[&first.id]).await.unwrap();
    let second = NewItem::checkpoint("half done")
        .title("later words")
        .tags(["b"]);
    let second = save_at(store, &partition, second, TIME + 5).await;
    assert!(!second.is_new);
    let merged = second.item;
    assert_eq!((&merged.id, merged.number), (&first.id, first.number));
    assert_eq!((merged.created, merged.updated), (TIME, TIME + 5));
    assert_eq!(merged.title, "later words");
    assert_eq!(merged.tags, ["b", "a"]);
    assert_eq!(merged.usage, 1);
    assert_eq!(
        list(store, &partition, ItemKind::Checkpoint).await,
        [merged]
    );
    assert!(matching(store, &partition, "early").await.is_empty());
    assert_eq!(matching(store, &partition, "later").await, ["half done"]);
    let other_branch = NewItem::checkpoint("half done").branch("other");
    assert!(save(store, &partition, other_branch).await.is_new);
}

async fn a_skill_is_replaced_by_one_of_the_same_name(store: &dyn MemoryStore) {
    let shared = Partition::shared(&ada());
    let skill = NewItem::skill("Deploy it", "", "push").tags(["old"]);
    let first = save(store, &shared, skill).await.item;
    let second = PreparedItem::new(NewItem::skill("deploy-it", "", "pull"), 0, TIME);
    let hash = second.hash().to_owned();
    let second = store.save(&shared, second).await.unwrap();
    assert!(!second.is_new);
    let found = store.find_by_hash(&shared, ItemKind::Skill, &hash);
    let found = found.await.unwrap().unwrap();
    assert_eq!((&found.id, &*found.body), (&first.id, "pull"));
    assert!(found.tags.is_empty());
    let as_checkpoint = store.find_by_hash(&shared, ItemKind::Checkpoint, &hash);
    assert_eq!(as_checkpoint.await.unwrap(), None);
}

async fn saving_records_an_operation(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let saved = save(store, &partition, NewItem::checkpoint("done")).await;
    let again = save(store, &partition, NewItem::checkpoint("done")).await;
    assert_ne!(saved.operation, again.operation);
    for id in [&saved.operation, &again.operation] {
        let found = store.find_operation(&ada(), id).await.unwrap().unwrap();
        assert_eq!(found.status, OperationStatus::Completed);
        assert_eq!(found.kind, "checkpoint_save");
        assert_eq!(
            found.result,
            Some(json!({ "checkpoint_id": saved.item.id }))
        );
    }
}

async fn concurrent_saves_of_one_item_create_one(store: Arc<dyn MemoryStore>) {
    let partition = create_project(&*store, &ada(), PROJECT).await;
    let saves: Vec<_> = (0..8)
        .map(|number| {
            let (store, partition) = (store.clone(), partition.clone());
            let tag = format!("tag{number}");
            let item = PreparedItem::new(NewItem::checkpoint("done").tags([tag]), 0, TIME);
            tokio::task::spawn_blocking(move || block_on(store.save(&partition, item)).unwrap())
        })
        .collect();
    let mut new = 0;
    for saved in saves {
        new += u32::from(saved.await.unwrap().is_new);
    }
    assert_eq!(new, 1);
    let items = list(&*store, &partition, ItemKind::Checkpoint).await;
    assert_eq!(items.len(), 1);
    assert_eq!(
        items[0].tags.len(),
        8,
        "no merge is lost: {:?}",
        items[0].tags
    );
}

async fn pages_neither_repeat_nor_omit_items(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    // Some items are created in the same millisecond.
    for number in 0..7 {
        let item = NewItem::checkpoint(format!("number {number}"));
        save_at(store, &partition, item, TIME + number / 3).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .list(&partition, ItemKind::Checkpoint, after, 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        assert!(seen.len() < 7, "the pages do not end: {seen:?}");
        after = Some(ListPosition {
            created: last.created,
            number: last.number,
        });
        seen.extend(page.into_iter().map(|item| item.body));
        let newer = NewItem::checkpoint(format!("after {}", seen.len()));
        save_at(store, &partition, newer, TIME + 100).await;
    }
    let expected: Vec<_> = (0..7)
        .rev()
        .map(|number| format!("number {number}"))
        .collect();
    assert_eq!(seen, expected);
}

async fn ids_and_titles_are_listed_newest_first(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let mut ids = Vec::new();
    for (time, title) in [
        (TIME + 2, "second"),
        (TIME + 1, "third"),
        (TIME + 3, "first"),
    ] {
        let item = NewItem::checkpoint(title).title(title);
        let saved = save_at(store, &partition, item, time).await.item;
        ids.push((saved.created, saved.id));
    }
    ids.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
    let scope = Scope::Partition(&partition);
    let all = store.ids(scope, ItemKind::Checkpoint, "", 9).await.unwrap();
    assert_eq!(all, ids);
    let two = store.ids(scope, ItemKind::Checkpoint, "ckpt_", 2);
    assert_eq!(two.await.unwrap(), ids[..2]);
    let none = store.ids(scope, ItemKind::Checkpoint, "%", 9);
    assert!(none.await.unwrap().is_empty(), "a prefix is not a pattern");
    let titles = store.titles(&partition, ItemKind::Checkpoint, 2);
    assert_eq!(titles.await.unwrap(), ["first", "second"]);
}

async fn a_selection_keeps_its_order(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let mut numbers = Vec::new();
    for (body, branch) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")] {
        let item = NewItem::checkpoint(body).branch(branch);
        numbers.push(save(store, &partition, item).await.item.number);
    }
    assert!(numbers.is_sorted(), "later items have greater numbers");
    let missing = ItemNumber::new(numbers[3].get() + 1);
    let numbers = [numbers[2], missing, numbers[0], numbers[1], numbers[3]];
    for (branch, limit, expected) in [
        (None, 9, &["c", "a", "b", "d"][..]),
        (Some("x"), 9, &["c", "a", "d"]),
        (Some("x"), 2, &["c", "a"]),
        (Some("z"), 9, &[]),
    ] {
        let selection = ItemSelection {
            numbers: &numbers,
            branch,
            limit,
        };
        let found = store.items(&partition, selection).await.unwrap();
        let bodies: Vec<_> = found.iter().map(|item| &*item.body).collect();
        assert_eq!(bodies, expected);
    }
}

async fn uses_are_counted(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let used = save(store, &partition, NewItem::checkpoint("used"))
        .await
        .item
        .id;
    let unused = save(store, &partition, NewItem::checkpoint("unused"))
        .await
        .item
        .id;
    let ids = [&*used, "ckpt_0000000000000000"];
    store.count_use(&partition, &ids).await.unwrap();
    store.count_use(&partition, &[&used]).await.unwrap();
    for (id, expected) in [(used, 2), (unused, 0)] {
        let found = store.find(Scope::Partition(&partition), &id).await.unwrap();
        assert_eq!(found.unwrap().1.usage, expected);
    }
}

async fn statistics_count_items_by_kind(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    for number in 0..3 {
        let item = NewItem::checkpoint(format!("number {number}"));
        save_at(store, &partition, item, TIME + number).await;
    }
    save(store, &partition, NewItem::remediation("broken", "fix")).await;
    let stats = store.stats(&partition).await.unwrap();
    let counts: Vec<_> = stats.items.into_iter().collect();
    assert_eq!(
        counts,
        [(ItemKind::Checkpoint, 3), (ItemKind::Remediation, 1)]
    );
    assert_eq!(stats.newest, Some(TIME + 2));
}
