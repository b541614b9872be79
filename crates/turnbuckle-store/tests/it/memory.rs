use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use turnbuckle_store::{
    BoxFuture, EventId, EventReplay, EventStore, SessionId, SessionOwner, Store, StoreError,
    StoreLimits, StreamId, conformance,
};

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
}

/// A log that uses the default implementation of `append_to_all`.
struct DefaultAppend(Arc<dyn EventStore>);

impl EventStore for DefaultAppend {
    fn open_stream<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a SessionOwner,
    ) -> BoxFuture<'a, Result<StreamId, StoreError>> {
        self.0.open_stream(session, owner)
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        data: Bytes,
    ) -> BoxFuture<'a, Result<EventId, StoreError>> {
        self.0.append(session, stream, data)
    }

    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>> {
        self.0.replay_after(session, last)
    }

    fn finish_stream<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.finish_stream(session, stream)
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.remove_session(session)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.sweep()
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_a_log_with_the_default_append_to_all() {
    conformance::events(async |limits| {
        let mut store = Store::memory_with(limits);
        store.events = Arc::new(DefaultAppend(store.events));
        store
    })
    .await;
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
