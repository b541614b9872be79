use std::time::Duration;

use bytes::Bytes;

use super::{TICK, ticks};
use crate::{Claim, ClaimToken, JournalId, Journals, Limits, Store, StoreError};

const LONG: Duration = Duration::from_secs(3_600);

/// Checks the journals and claims of a store.
pub async fn journals(make: impl AsyncFn(Limits) -> Store) {
    a_journal_is_read_back_as_often_as_wanted(&make).await;
    a_journal_expires(&make).await;
    a_journal_with_an_owner_is_one_as_any_other(&make).await;
    journals_are_limited(&make).await;
    expired_journals_make_room(&make).await;
    a_claim_is_made_once(&make).await;
    an_abandoned_claim_can_be_made_again(&make).await;
    a_claim_that_ran_out_can_be_made_again(&make).await;
    an_outcome_is_kept_from_its_completion_on(&make).await;
    claims_are_limited(&make).await;
    any_time_to_live_is_fine(&make).await;
}

fn bytes(count: usize) -> Bytes {
    vec![b'x'; count].into()
}

async fn fresh(journals: &dyn Journals, key: &str, ttl: Duration) -> ClaimToken {
    match journals.claim(key, ttl).await.unwrap() {
        Claim::Fresh(token) => token,
        other => panic!("`{key}` is not free: {other:?}"),
    }
}

async fn a_journal_is_read_back_as_often_as_wanted(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;

    let one = journals.put("one".into(), LONG).await.unwrap();
    let two = journals.put("two".into(), LONG).await.unwrap();
    let unknown = JournalId::generate().unwrap();

    for _ in 0..2 {
        assert_eq!(journals.get(&one).await.unwrap().unwrap(), "one");
        assert_eq!(journals.get(&two).await.unwrap().unwrap(), "two");
    }
    assert_eq!(journals.get(&unknown).await.unwrap(), None);
}

async fn a_journal_expires(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;
    let short = journals.put("short".into(), TICK * 2).await.unwrap();
    let long = journals.put("long".into(), LONG).await.unwrap();

    ticks(1).await;
    assert!(journals.get(&short).await.unwrap().is_some());
    ticks(2).await;

    assert_eq!(journals.get(&short).await.unwrap(), None);
    journals.sweep().await.unwrap();
    assert_eq!(journals.get(&long).await.unwrap().unwrap(), "long");
}

async fn a_journal_with_an_owner_is_one_as_any_other(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;

    let one = journals.put_for("ada", "one".into(), LONG).await.unwrap();
    let two = journals.put_for("bob", "two".into(), TICK).await.unwrap();
    ticks(2).await;

    assert_eq!(journals.get(&one).await.unwrap().unwrap(), "one");
    assert_eq!(journals.get(&two).await.unwrap(), None);
}

async fn journals_are_limited(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
    limits.journals.max_journals = 3;
    limits.journals.max_entry_bytes = 60;
    limits.journals.max_journal_bytes = 100;
    let journals = make(limits).await.journals;

    let too_large = journals.put(bytes(61), LONG).await;
    let first = journals.put(bytes(60), LONG).await.unwrap();
    let too_much = journals.put(bytes(60), LONG).await;
    journals.put(bytes(40), LONG).await.unwrap();
    journals.put(bytes(0), LONG).await.unwrap();
    let too_many = journals.put(bytes(0), LONG).await;

    assert!(matches!(
        too_large,
        Err(StoreError::TooLarge { limit: 60, .. })
    ));
    assert!(matches!(too_much, Err(StoreError::Full { .. })));
    assert!(matches!(too_many, Err(StoreError::Full { .. })));
    assert_eq!(journals.get(&first).await.unwrap().unwrap().len(), 60);
}

async fn expired_journals_make_room(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
    limits.journals.max_journals = 2;
    let journals = make(limits).await.journals;
    let kept = journals.put("kept".into(), LONG).await.unwrap();

    for _ in 0..3 {
        let next = journals.put("next".into(), TICK).await.unwrap();
        assert!(journals.get(&next).await.unwrap().is_some());
        assert!(journals.put("more".into(), TICK).await.is_err());
        ticks(2).await;
    }
    assert!(journals.get(&kept).await.unwrap().is_some());
}

async fn a_claim_is_made_once(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;

    let token = fresh(&*journals, "pay", LONG).await;
    assert_eq!(token.key(), "pay");
    fresh(&*journals, "other", LONG).await;
    let meanwhile = journals.claim("pay", LONG).await.unwrap();
    journals.complete(token, "paid".into()).await.unwrap();

    assert!(matches!(meanwhile, Claim::Running));
    for _ in 0..2 {
        let later = journals.claim("pay", LONG).await.unwrap();
        assert!(matches!(later, Claim::Done(outcome) if outcome == "paid"));
    }
}

async fn an_abandoned_claim_can_be_made_again(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;

    let token = fresh(&*journals, "pay", LONG).await;
    journals.abandon(token).await.unwrap();
    let again = fresh(&*journals, "pay", LONG).await;
    journals.complete(again, Bytes::new()).await.unwrap();

    let done = journals.claim("pay", LONG).await.unwrap();
    assert!(matches!(done, Claim::Done(outcome) if outcome.is_empty()));
}

async fn a_claim_that_ran_out_can_be_made_again(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;
    let dead = fresh(&*journals, "pay", TICK).await;
    let slow = fresh(&*journals, "ship", TICK).await;
    ticks(2).await;

    let token = fresh(&*journals, "pay", LONG).await;
    let again = fresh(&*journals, "ship", LONG).await;
    // Whoever comes too late must not end the claim of who came after.
    journals.abandon(dead).await.unwrap();
    let late = journals.complete(slow, "late".into()).await;

    assert!(matches!(late, Err(StoreError::Gone { .. })));
    let pay = journals.claim("pay", LONG).await.unwrap();
    assert!(matches!(pay, Claim::Running));
    journals.complete(token, "paid".into()).await.unwrap();
    journals.complete(again, "shipped".into()).await.unwrap();
    let ship = journals.claim("ship", LONG).await.unwrap();
    assert!(matches!(ship, Claim::Done(outcome) if outcome == "shipped"));
}

async fn an_outcome_is_kept_from_its_completion_on(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;
    let token = fresh(&*journals, "pay", TICK * 3).await;
    ticks(2).await;
    journals.complete(token, "paid".into()).await.unwrap();

    ticks(2).await;
    let kept = journals.claim("pay", LONG).await.unwrap();
    assert!(matches!(kept, Claim::Done(_)));
    ticks(2).await;
    fresh(&*journals, "pay", LONG).await;
}

async fn claims_are_limited(make: &impl AsyncFn(Limits) -> Store) {
    let mut limits = Limits::default();
    limits.journals.max_claims = 2;
    limits.journals.max_key_bytes = 4;
    limits.journals.max_entry_bytes = 90;
    limits.journals.max_claim_bytes = 100;
    let journals = make(limits).await.journals;

    let too_long = journals.claim("12345", LONG).await;
    let one = fresh(&*journals, "1", LONG).await;
    let two = fresh(&*journals, "2", TICK).await;
    let too_many = journals.claim("3", LONG).await;
    let known = journals.claim("1", LONG).await.unwrap();
    journals.complete(one, bytes(90)).await.unwrap();
    let too_much = journals.complete(two, bytes(9)).await;

    assert!(matches!(
        too_long,
        Err(StoreError::TooLarge { limit: 4, .. })
    ));
    assert!(matches!(too_many, Err(StoreError::Full { .. })));
    assert!(matches!(known, Claim::Running));
    assert!(matches!(too_much, Err(StoreError::Full { .. })));
    // What could not be kept must not be done twice while its claim lasts.
    assert!(matches!(
        journals.claim("2", LONG).await.unwrap(),
        Claim::Running
    ));
    ticks(2).await;
    fresh(&*journals, "3", LONG).await;
}

async fn any_time_to_live_is_fine(make: &impl AsyncFn(Limits) -> Store) {
    let journals = make(Limits::default()).await.journals;

    let ever = journals.put("ever".into(), Duration::MAX).await.unwrap();
    let never = journals.put("never".into(), Duration::ZERO).await.unwrap();
    fresh(&*journals, "ever", Duration::MAX).await;

    assert!(journals.get(&ever).await.unwrap().is_some());
    assert_eq!(journals.get(&never).await.unwrap(), None);
}
