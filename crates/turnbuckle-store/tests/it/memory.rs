use std::time::Duration;

use bytes::Bytes;
use turnbuckle_store::{Store, StoreError, StoreLimits, conformance};

async fn memory(limits: StoreLimits) -> Store {
    Store::memory_with(limits)
}

#[tokio::test(start_paused = true)]
async fn sessions() {
    conformance::sessions(memory).await;
}

#[tokio::test(start_paused = true)]
async fn events() {
    conformance::events(memory).await;
    conformance::event_totals(memory).await;
}

#[tokio::test(start_paused = true)]
async fn bus() {
    conformance::bus(memory).await;
}

#[tokio::test(start_paused = true)]
async fn control() {
    conformance::control(memory).await;
}

#[tokio::test(start_paused = true)]
async fn instances() {
    conformance::instances(async |limits| Store::memory_with(limits).shared()).await;
}

#[test]
fn a_store_in_memory_is_not_shared() {
    assert!(!Store::memory().is_shared());
    assert!(Store::memory().shared().is_shared());
}

#[tokio::test(start_paused = true)]
async fn request_states() {
    conformance::request_states(memory).await;
}

#[tokio::test(start_paused = true)]
async fn claims() {
    conformance::claims(memory).await;
}

#[tokio::test(start_paused = true)]
async fn tasks() {
    conformance::tasks(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency() {
    conformance::concurrency(memory).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_has_a_quota_of_request_state_and_expired_entries_return_theirs() {
    let mut limits = StoreLimits::default();
    limits.request_states.max_owner_bytes = 100;
    let states = memory(limits).await.request_states;
    let bytes = |count: usize| Bytes::from(vec![b'x'; count]);
    let minute = Duration::from_secs(60);

    states.put_for("ada", bytes(60), minute).await.unwrap();
    let too_much = states.put_for("ada", bytes(41), minute).await;
    states.put_for("ada", bytes(40), minute).await.unwrap();
    states.put_for("bob", bytes(100), minute).await.unwrap();
    states.put(bytes(1_000), minute).await.unwrap();

    assert!(matches!(
        too_much,
        Err(StoreError::TooMany { limit: 100, .. })
    ));
    tokio::time::advance(minute).await;
    states.put_for("ada", bytes(100), minute).await.unwrap();
}
