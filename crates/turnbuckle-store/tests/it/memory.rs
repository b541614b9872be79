use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use turnbuckle_store::{
    BoxFuture, EventId, Events, Limits, Replay, SessionId, Store, StoreError, StreamId, suite,
};

async fn memory(limits: Limits) -> Store {
    Store::memory_with(limits)
}

#[tokio::test(start_paused = true)]
async fn sessions() {
    suite::sessions(memory).await;
}

#[tokio::test(start_paused = true)]
async fn events() {
    suite::events(memory).await;
}

/// A log that has no way of its own to append to many streams.
struct Plain(Arc<dyn Events>);

impl Events for Plain {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<StreamId, StoreError>> {
        self.0.open(session)
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        data: Bytes,
    ) -> BoxFuture<'a, Result<EventId, StoreError>> {
        self.0.append(session, stream, data)
    }

    fn after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<Replay>, StoreError>> {
        self.0.after(session, last)
    }

    fn finish<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.finish(session, stream)
    }

    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.forget(session)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.sweep()
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_a_log_that_appends_one_by_one() {
    suite::events(async |limits| {
        let mut store = Store::memory_with(limits);
        store.events = Arc::new(Plain(store.events));
        store
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bus() {
    suite::bus(memory).await;
}

#[tokio::test(start_paused = true)]
async fn journals() {
    suite::journals(memory).await;
}

#[tokio::test(start_paused = true)]
async fn tasks() {
    suite::tasks(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races() {
    suite::races(memory).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_has_a_share_of_the_journals_and_gets_back_what_expired() {
    let mut limits = Limits::default();
    limits.journals.max_owner_bytes = 100;
    let journals = memory(limits).await.journals;
    let bytes = |count: usize| Bytes::from(vec![b'x'; count]);
    let minute = Duration::from_secs(60);

    journals.put_for("ada", bytes(60), minute).await.unwrap();
    let too_much = journals.put_for("ada", bytes(41), minute).await;
    journals.put_for("ada", bytes(40), minute).await.unwrap();
    journals.put_for("bob", bytes(100), minute).await.unwrap();
    journals.put(bytes(1_000), minute).await.unwrap();

    assert!(matches!(
        too_much,
        Err(StoreError::TooMany { limit: 100, .. })
    ));
    tokio::time::advance(minute).await;
    journals.put_for("ada", bytes(100), minute).await.unwrap();
}
