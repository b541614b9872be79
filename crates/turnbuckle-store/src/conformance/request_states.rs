use std::time::Duration;

use bytes::Bytes;

use super::{TICK, ticks};
use crate::{RequestStateId, Store, StoreError, StoreLimits};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks the request state of a store.
pub async fn request_states(make: impl AsyncFn(StoreLimits) -> Store) {
    an_entry_can_be_read_repeatedly(&make).await;
    an_entry_expires(&make).await;
    an_entry_with_an_owner_behaves_like_any_other(&make).await;
    entries_are_limited(&make).await;
    expired_entries_make_room(&make).await;
    any_time_to_live_is_accepted(&make).await;
}

fn bytes(count: usize) -> Bytes {
    vec![b'x'; count].into()
}

async fn an_entry_can_be_read_repeatedly(make: &impl AsyncFn(StoreLimits) -> Store) {
    let states = make(StoreLimits::default()).await.request_states;

    let one = states.put("one".into(), LONG).await.unwrap();
    let two = states.put("two".into(), LONG).await.unwrap();
    let unknown = RequestStateId::generate().unwrap();

    for _ in 0..2 {
        assert_eq!(states.get(&one).await.unwrap().unwrap(), "one");
        assert_eq!(states.get(&two).await.unwrap().unwrap(), "two");
    }
    assert_eq!(states.get(&unknown).await.unwrap(), None);
}

async fn an_entry_expires(make: &impl AsyncFn(StoreLimits) -> Store) {
    let states = make(StoreLimits::default()).await.request_states;
    let short = states.put("short".into(), TICK * 2).await.unwrap();
    let long = states.put("long".into(), LONG).await.unwrap();

    ticks(1).await;
    assert!(states.get(&short).await.unwrap().is_some());
    ticks(2).await;

    assert_eq!(states.get(&short).await.unwrap(), None);
    states.sweep().await.unwrap();
    assert_eq!(states.get(&long).await.unwrap().unwrap(), "long");
}

async fn an_entry_with_an_owner_behaves_like_any_other(make: &impl AsyncFn(StoreLimits) -> Store) {
    let states = make(StoreLimits::default()).await.request_states;

    let one = states.put_for("ada", "one".into(), LONG).await.unwrap();
    let two = states.put_for("bob", "two".into(), TICK).await.unwrap();
    ticks(2).await;

    assert_eq!(states.get(&one).await.unwrap().unwrap(), "one");
    assert_eq!(states.get(&two).await.unwrap(), None);
}

async fn entries_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.request_states.max_states = 3;
    limits.request_states.max_state_bytes = 60;
    limits.request_states.max_total_bytes = 100;
    let states = make(limits).await.request_states;

    let too_large = states.put(bytes(61), LONG).await;
    let first = states.put(bytes(60), LONG).await.unwrap();
    let too_much = states.put(bytes(60), LONG).await;
    states.put(bytes(40), LONG).await.unwrap();
    states.put(bytes(0), LONG).await.unwrap();
    let too_many = states.put(bytes(0), LONG).await;

    assert!(matches!(
        too_large,
        Err(StoreError::TooLarge { limit: 60, .. })
    ));
    assert!(matches!(too_much, Err(StoreError::Full { .. })));
    assert!(matches!(too_many, Err(StoreError::Full { .. })));
    assert_eq!(states.get(&first).await.unwrap().unwrap().len(), 60);
}

async fn expired_entries_make_room(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.request_states.max_states = 2;
    let states = make(limits).await.request_states;
    let kept = states.put("kept".into(), LONG).await.unwrap();

    for _ in 0..3 {
        let next = states.put("next".into(), TICK).await.unwrap();
        assert!(states.get(&next).await.unwrap().is_some());
        assert!(states.put("more".into(), TICK).await.is_err());
        ticks(2).await;
    }
    assert!(states.get(&kept).await.unwrap().is_some());
}

async fn any_time_to_live_is_accepted(make: &impl AsyncFn(StoreLimits) -> Store) {
    let states = make(StoreLimits::default()).await.request_states;

    let ever = states.put("ever".into(), Duration::MAX).await.unwrap();
    let never = states.put("never".into(), Duration::ZERO).await.unwrap();

    assert!(states.get(&ever).await.unwrap().is_some());
    assert_eq!(states.get(&never).await.unwrap(), None);
}
