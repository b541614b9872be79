use std::sync::Arc;

use super::{OTHER_PROJECT, PROJECT, TIME, ada, create_project, list, save, save_at};
use crate::{
    ContextError, Owner,
    memory::{ItemKind, MemoryItem, NewItem, PreparedItem},
    memory_store::{ExportEntry, ImportCounts, ImportEntry, MemoryStore, Partition},
};

/// Checks export and import.
pub async fn transfer(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    an_export_has_collections_and_items_in_order(&*make().await).await;
    an_error_of_the_sink_ends_the_export(&*make().await).await;
    imported_items_are_those_exported(&*make().await).await;
    an_import_keeps_the_later_duplicate(&*make().await).await;
    an_id_in_use_is_not_imported(&*make().await).await;
    a_failed_import_can_be_repeated(&*make().await).await;
}

async fn export(store: &dyn MemoryStore, partition: &Partition) -> Vec<ExportEntry> {
    let mut entries = Vec::new();
    let mut sink = |entry| {
        entries.push(entry);
        Ok(())
    };
    let exported = store.export(partition, &mut sink).await.unwrap();
    assert!(exported.lost.is_empty(), "{:?}", exported.lost);
    let is_item = |entry: &&ExportEntry| matches!(entry, ExportEntry::Item(_));
    assert_eq!(
        exported.items,
        entries.iter().filter(is_item).count() as u64
    );
    entries
}

/// Returns the entry that imports a new item, with the times of a stored one.
fn entry(new_item: NewItem, time: i64, id: &str) -> ImportEntry {
    ImportEntry::Item {
        item: Box::new(PreparedItem::new(new_item, 0, time)),
        id: Some(id.to_owned()),
    }
}

async fn import(
    store: &dyn MemoryStore,
    partition: &Partition,
    entries: Vec<ImportEntry>,
) -> ImportCounts {
    let mut entries = entries.into_iter().map(Ok);
    store.import(partition, &mut entries).await.unwrap()
}

fn counts(new: u64, updated: u64, unchanged: u64) -> ImportCounts {
    ImportCounts {
        new,
        updated,
        unchanged,
    }
}

async fn an_export_has_collections_and_items_in_order(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let mut expected = vec![
        ExportEntry::Collection {
            label: "a".to_owned(),
            vector_size: 5,
        },
        ExportEntry::Collection {
            label: "b".to_owned(),
            vector_size: 3,
        },
    ];
    store.create_collection(&partition, "b", 3).await.unwrap();
    store.create_collection(&partition, "a", 5).await.unwrap();
    let fix = save(store, &partition, NewItem::remediation("broken", "fix"))
        .await
        .item;
    for body in ["z", "y"] {
        let saved = save(store, &partition, NewItem::checkpoint(body))
            .await
            .item;
        expected.push(ExportEntry::Item(Box::new(saved)));
    }
    expected.push(ExportEntry::Item(Box::new(fix)));
    assert_eq!(export(store, &partition).await, expected);
}

async fn an_error_of_the_sink_ends_the_export(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save(store, &partition, NewItem::checkpoint("one")).await;
    save(store, &partition, NewItem::checkpoint("two")).await;
    let mut calls = 0;
    let mut sink = |_| {
        calls += 1;
        Err(ContextError::invalid("no room"))
    };
    let error = store.export(&partition, &mut sink).await.unwrap_err();
    assert_eq!(ContextError::from(error).to_string(), "no room");
    assert_eq!(calls, 1);
}

async fn imported_items_are_those_exported(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let new_item = || {
        NewItem::checkpoint("done")
            .title("a title")
            .tags(["tag"])
            .branch("x")
    };
    let entries = || {
        vec![
            ImportEntry::Collection {
                label: "a_b".to_owned(),
                vector_size: 3,
            },
            entry(new_item(), TIME, "ckpt_00000000000000aa"),
        ]
    };
    assert_eq!(import(store, &partition, entries()).await, counts(1, 0, 0));
    let first = export(store, &partition).await;
    let [_, ExportEntry::Item(item)] = &*first else {
        panic!("{first:?}");
    };
    assert_eq!((&*item.id, item.created), ("ckpt_00000000000000aa", TIME));
    assert_eq!((&*item.title, &*item.branch), ("a title", "x"));
    assert_eq!(import(store, &partition, entries()).await, counts(0, 0, 1));
    assert_eq!(export(store, &partition).await, first);
    let bob = create_project(store, &Owner::for_user("bob"), PROJECT).await;
    assert!(export(store, &bob).await.is_empty());
}

/// Returns the only checkpoint of a partition.
async fn only_item(store: &dyn MemoryStore, partition: &Partition) -> MemoryItem {
    let mut items = list(store, partition, ItemKind::Checkpoint).await;
    assert_eq!(items.len(), 1);
    items.remove(0)
}

async fn an_import_keeps_the_later_duplicate(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let titled = |title: &str| NewItem::checkpoint("done").title(title);
    save_at(store, &partition, titled("stored"), TIME).await;
    for (time, title, expected, kept) in [
        (TIME - 1, "older", counts(0, 0, 1), "stored"),
        (TIME, "same time", counts(0, 0, 1), "stored"),
        (TIME + 1, "newer", counts(0, 1, 0), "newer"),
    ] {
        let entries = vec![entry(titled(title), time, "ckpt_00000000000000aa")];
        assert_eq!(import(store, &partition, entries).await, expected);
        assert_eq!(only_item(store, &partition).await.title, kept);
    }
}

async fn an_id_in_use_is_not_imported(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let used = save(store, &partition, NewItem::checkpoint("stored"))
        .await
        .item;
    let entries = vec![
        entry(NewItem::checkpoint("imported"), TIME + 1, &used.id),
        // Not an id of a checkpoint.
        entry(
            NewItem::checkpoint("another"),
            TIME + 2,
            "rem_00000000000000aa",
        ),
    ];
    assert_eq!(import(store, &partition, entries).await, counts(2, 0, 0));
    let items = list(store, &partition, ItemKind::Checkpoint).await;
    let bodies: Vec<_> = items.iter().map(|item| &*item.body).collect();
    assert_eq!(bodies, ["another", "imported", "stored"]);
    assert!(
        items
            .iter()
            .all(|item| ItemKind::from_id(&item.id) == Some(item.kind))
    );
    assert_eq!(items.iter().filter(|item| item.id == used.id).count(), 1);
}

async fn a_failed_import_can_be_repeated(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), OTHER_PROJECT).await;
    let item = || entry(NewItem::checkpoint("done"), TIME, "ckpt_00000000000000aa");
    let mut entries = [Ok(item()), Err(ContextError::invalid("broken file"))].into_iter();
    let error = store.import(&partition, &mut entries).await.unwrap_err();
    assert_eq!(ContextError::from(error).to_string(), "broken file");
    import(store, &partition, vec![item()]).await;
    only_item(store, &partition).await;
}
