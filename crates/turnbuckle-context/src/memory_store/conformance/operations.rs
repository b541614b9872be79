use std::sync::Arc;

use serde_json::json;

use super::{PROJECT, ada, create_project};
use crate::memory_store::{MemoryStore, OperationState, OperationStatus, Partition};

/// Checks records of operations.
pub async fn operations(make: impl AsyncFn() -> Arc<dyn MemoryStore>) {
    an_operation_runs_until_it_ends(&*make().await).await;
    an_ended_operation_does_not_change(&*make().await).await;
    an_unknown_operation_is_not_found(&*make().await).await;
}

async fn an_operation_runs_until_it_ends(store: &dyn MemoryStore) {
    let partition = create_project(store, &ada(), PROJECT).await;
    let id = store.record_operation(&partition, "index_repository", OperationState::Running);
    let id = id.await.unwrap();
    let touched = store.update_operation(&partition, &id, OperationState::Running);
    touched.await.unwrap();
    let found = store.find_operation(&ada(), &id).await.unwrap().unwrap();
    assert_eq!(
        (found.status, &*found.kind),
        (OperationStatus::Running, "index_repository")
    );
    assert_eq!(store.running_operations(&partition).await.unwrap(), [&*id]);
    let failed = store.update_operation(&partition, &id, OperationState::Failed("disk full"));
    failed.await.unwrap();
    let found = store.find_operation(&ada(), &id).await.unwrap().unwrap();
    assert_eq!(
        (found.status, found.result),
        (OperationStatus::Failed, None)
    );
    assert_eq!(found.error.as_deref(), Some("disk full"));
    assert!(
        store
            .running_operations(&partition)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn an_ended_operation_does_not_change(store: &dyn MemoryStore) {
    let shared = Partition::shared(&ada());
    let result = json!({ "files_indexed": 3 });
    let completed = OperationState::Completed(&result);
    let id = store.record_operation(&shared, "collection_create", completed);
    let id = id.await.unwrap();
    for state in [OperationState::Failed("too late"), OperationState::Running] {
        store.update_operation(&shared, &id, state).await.unwrap();
        let found = store.find_operation(&ada(), &id).await.unwrap().unwrap();
        assert_eq!(
            (found.status, found.error),
            (OperationStatus::Completed, None)
        );
        assert_eq!(found.result.as_ref(), Some(&result));
    }
}

async fn an_unknown_operation_is_not_found(store: &dyn MemoryStore) {
    create_project(store, &ada(), PROJECT).await;
    let owner = ada();
    let found = store.find_operation(&owner, "op_0000000000000000");
    assert_eq!(found.await.unwrap(), None);
}
