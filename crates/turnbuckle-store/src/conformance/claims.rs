use std::time::Duration;

use bytes::Bytes;

use super::{TICK, ticks};
use crate::{ClaimStatus, ClaimStore, ClaimToken, Store, StoreError, StoreLimits};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks the claims of a store.
pub async fn claims(make: impl AsyncFn(StoreLimits) -> Store) {
    a_claim_is_granted_once(&make).await;
    an_abandoned_claim_is_granted_again(&make).await;
    an_expired_claim_is_granted_again(&make).await;
    an_outcome_is_stored_from_its_completion_on(&make).await;
    claims_are_limited(&make).await;
    any_time_to_live_is_accepted(&make).await;
}

fn bytes(count: usize) -> Bytes {
    vec![b'x'; count].into()
}

async fn granted(claims: &dyn ClaimStore, key: &str, ttl: Duration) -> ClaimToken {
    match claims.claim(key, ttl).await.unwrap() {
        ClaimStatus::Granted(token) => token,
        other => panic!("the claim of `{key}` was not granted: {other:?}"),
    }
}

async fn a_claim_is_granted_once(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;

    let token = granted(&*claims, "pay", LONG).await;
    assert_eq!(token.key(), "pay");
    granted(&*claims, "other", LONG).await;
    let concurrent = claims.claim("pay", LONG).await.unwrap();
    claims.complete(token, "paid".into()).await.unwrap();

    assert!(matches!(concurrent, ClaimStatus::Running));
    for _ in 0..2 {
        let later = claims.claim("pay", LONG).await.unwrap();
        assert!(matches!(later, ClaimStatus::Done(outcome) if outcome == "paid"));
    }
}

async fn an_abandoned_claim_is_granted_again(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;

    let token = granted(&*claims, "pay", LONG).await;
    claims.abandon(token).await.unwrap();
    let again = granted(&*claims, "pay", LONG).await;
    claims.complete(again, Bytes::new()).await.unwrap();

    let done = claims.claim("pay", LONG).await.unwrap();
    assert!(matches!(done, ClaimStatus::Done(outcome) if outcome.is_empty()));
}

async fn an_expired_claim_is_granted_again(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;
    let dead = granted(&*claims, "pay", TICK).await;
    let slow = granted(&*claims, "ship", TICK).await;
    ticks(2).await;

    let token = granted(&*claims, "pay", LONG).await;
    let again = granted(&*claims, "ship", LONG).await;
    // The holder of an expired claim must not end the claim of its successor.
    claims.abandon(dead).await.unwrap();
    let late = claims.complete(slow, "late".into()).await;

    assert!(matches!(late, Err(StoreError::Gone { .. })));
    let pay = claims.claim("pay", LONG).await.unwrap();
    assert!(matches!(pay, ClaimStatus::Running));
    claims.complete(token, "paid".into()).await.unwrap();
    claims.complete(again, "shipped".into()).await.unwrap();
    let ship = claims.claim("ship", LONG).await.unwrap();
    assert!(matches!(ship, ClaimStatus::Done(outcome) if outcome == "shipped"));
}

async fn an_outcome_is_stored_from_its_completion_on(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;
    let token = granted(&*claims, "pay", TICK * 3).await;
    ticks(2).await;
    claims.complete(token, "paid".into()).await.unwrap();

    ticks(2).await;
    let kept = claims.claim("pay", LONG).await.unwrap();
    assert!(matches!(kept, ClaimStatus::Done(_)));
    ticks(2).await;
    granted(&*claims, "pay", LONG).await;
}

async fn claims_are_limited(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.claims.max_claims = 2;
    limits.claims.max_key_bytes = 4;
    limits.claims.max_outcome_bytes = 90;
    limits.claims.max_total_bytes = 100;
    let claims = make(limits).await.claims;

    let too_long = claims.claim("12345", LONG).await;
    let one = granted(&*claims, "1", LONG).await;
    let two = granted(&*claims, "2", TICK).await;
    let too_many = claims.claim("3", LONG).await;
    let running = claims.claim("1", LONG).await.unwrap();
    claims.complete(one, bytes(90)).await.unwrap();
    let too_much = claims.complete(two, bytes(9)).await;

    assert!(matches!(
        too_long,
        Err(StoreError::TooLarge { limit: 4, .. })
    ));
    assert!(matches!(too_many, Err(StoreError::Full { .. })));
    assert!(matches!(running, ClaimStatus::Running));
    assert!(matches!(too_much, Err(StoreError::Full { .. })));
    // If its outcome could not be stored, an effect must not be repeated while its claim lasts.
    assert!(matches!(
        claims.claim("2", LONG).await.unwrap(),
        ClaimStatus::Running
    ));
    ticks(2).await;
    granted(&*claims, "3", LONG).await;
}

async fn any_time_to_live_is_accepted(make: &impl AsyncFn(StoreLimits) -> Store) {
    let claims = make(StoreLimits::default()).await.claims;
    granted(&*claims, "ever", Duration::MAX).await;
}
