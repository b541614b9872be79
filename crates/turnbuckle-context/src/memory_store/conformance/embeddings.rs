use std::sync::Arc;

use super::{PROJECT, ada, create_project, save};
use crate::{
    code_search::EmbeddingQuery,
    memory::{ItemKind, NewItem},
    memory_store::{EmbeddingCoverage, ItemFilter, ItemNumber, MemoryStore, Partition},
};

const MODEL: &str = "toy";

/// Checks embeddings of items.
pub async fn embeddings(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    the_nearest_items_come_first(&*make().await).await;
    embeddings_of_other_models_are_not_compared(&*make().await).await;
    missing_embeddings_are_listed_by_number(&*make().await).await;
    a_changed_text_loses_its_embedding(&*make().await).await;
    a_removed_item_loses_its_embedding(&*make().await).await;
}

/// Saves a checkpoint with an embedding.
async fn save_embedded(
    store: &dyn MemoryStore,
    partition: &Partition,
    body: &str,
    vector: Vec<f32>,
) -> ItemNumber {
    let number = save(store, partition, NewItem::checkpoint(body))
        .await
        .item
        .number;
    let missing = store.missing_embeddings(partition, MODEL, None, 1_000);
    let mut missing = missing.await.unwrap();
    missing.retain(|missing| missing.number == number);
    let missing = missing.into_iter().map(|missing| (missing, vector.clone()));
    let saved = store.save_embeddings(partition, MODEL, missing.collect());
    assert_eq!(saved.await.unwrap(), 1);
    number
}

/// Returns the items that are nearest to the vector `[1, 0]`.
async fn nearest(
    store: &dyn MemoryStore,
    partition: &Partition,
    kind: ItemKind,
    limit: usize,
) -> Vec<(ItemNumber, f64)> {
    let query = EmbeddingQuery {
        model: MODEL.to_owned(),
        vector: vec![1.0, 0.0],
    };
    store.nearest(partition, kind, &query, limit).await.unwrap()
}

async fn the_nearest_items_come_first(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let near = save_embedded(store, &partition, "near", vec![0.6, 0.8]).await;
    let same = save_embedded(store, &partition, "same", vec![1.0, 0.0]).await;
    save_embedded(store, &partition, "opposite", vec![-1.0, 0.0]).await;
    save_embedded(store, &partition, "orthogonal", vec![0.0, 1.0]).await;
    let found = nearest(store, &partition, ItemKind::Checkpoint, 9).await;
    let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [same, near]);
    assert!((found[0].1 - 1.0).abs() < 1e-6 && (found[1].1 - 0.6).abs() < 1e-6);
    assert_eq!(
        nearest(store, &partition, ItemKind::Checkpoint, 1)
            .await
            .len(),
        1
    );
    assert!(
        nearest(store, &partition, ItemKind::Skill, 9)
            .await
            .is_empty()
    );
    let branches = store.branches(&partition).await.unwrap();
    assert_eq!(branches.vector_size, 2);
}

async fn embeddings_of_other_models_are_not_compared(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save_embedded(store, &partition, "three dimensions", vec![0.6, 0.8, 0.0]).await;
    assert!(
        nearest(store, &partition, ItemKind::Checkpoint, 9)
            .await
            .is_empty()
    );
    let coverage = store.embedding_coverage(&partition, "other").await.unwrap();
    assert_eq!((coverage.created, coverage.total), (0, 1));
}

async fn missing_embeddings_are_listed_by_number(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save_embedded(store, &partition, "embedded", vec![1.0, 0.0]).await;
    let item = NewItem::remediation("the error", "the fix").detail("the context");
    let fix = save(store, &partition, item).await.item.number;
    save(store, &partition, NewItem::skill("b", "", "second")).await;
    let missing = store.missing_embeddings(&partition, MODEL, None, 9);
    let missing = missing.await.unwrap();
    assert_eq!(missing.len(), 2);
    assert_eq!(missing[0].number, fix);
    assert_eq!(missing[0].text, "the error\nthe context\nthe fix\n");
    let next = store.missing_embeddings(&partition, MODEL, Some(fix), 9);
    assert_eq!(next.await.unwrap(), missing[1..]);
    let first = store.missing_embeddings(&partition, MODEL, None, 1);
    assert_eq!(first.await.unwrap(), missing[..1]);
    let coverage = store.embedding_coverage(&partition, MODEL).await.unwrap();
    let expected = EmbeddingCoverage {
        created: 1,
        total: 3,
    };
    assert_eq!(coverage, expected);
}

async fn a_changed_text_loses_its_embedding(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save_embedded(store, &partition, "half done", vec![1.0, 0.0]).await;
    save(
        store,
        &partition,
        NewItem::checkpoint("half done").title("new title"),
    )
    .await;
    assert!(
        nearest(store, &partition, ItemKind::Checkpoint, 9)
            .await
            .is_empty()
    );
    let missing = store.missing_embeddings(&partition, MODEL, None, 9);
    let missing = missing.await.unwrap();
    save(
        store,
        &partition,
        NewItem::checkpoint("half done").title("newer title"),
    )
    .await;
    let outdated = missing.into_iter().map(|missing| (missing, vec![1.0, 0.0]));
    let saved = store.save_embeddings(&partition, MODEL, outdated.collect());
    assert_eq!(saved.await.unwrap(), 0);
}

async fn a_removed_item_loses_its_embedding(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    save_embedded(store, &partition, "throw away", vec![1.0, 0.0]).await;
    let filter = ItemFilter::Before {
        kind: None,
        time: i64::MAX,
    };
    store.remove(&partition, &filter).await.unwrap();
    // The number may be used again.
    save(store, &partition, NewItem::checkpoint("another")).await;
    assert!(
        nearest(store, &partition, ItemKind::Checkpoint, 9)
            .await
            .is_empty()
    );
}
