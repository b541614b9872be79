//! Open requests, with a clock of our own.

use super::*;

const PATIENCE: Patience = Patience {
    silence: Duration::from_secs(10),
    total: Duration::from_secs(25),
};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn an_answer_takes_its_request_once() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let first = pending.open("a", PATIENCE, now);
    let second = pending.open("b", PATIENCE, now);

    assert_ne!(first, second);
    assert_eq!(pending.take(&second), Some("b"));
    assert_eq!(pending.take(&second), None);
    assert_eq!(pending.take(&first), Some("a"));
    assert!(pending.is_empty());
    assert_eq!(pending.next_deadline(), None);
}

#[test]
fn an_id_matches_by_value_but_not_across_kinds() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let id = pending.open("a", PATIENCE, now);
    let text = RequestId::from(id.raw().as_ref());
    let decimal = RequestId::from_json(&format!("{id}.0")).unwrap();

    assert_eq!(pending.take(&text), None);
    assert_eq!(pending.take(&RequestId::from(99)), None);
    assert_eq!(pending.take(&RequestId::from_json("1e400").unwrap()), None);
    assert_eq!(pending.take(&decimal), Some("a"));
}

#[test]
fn silence_expires_a_request() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let id = pending.open("a", PATIENCE, now);

    assert_eq!(pending.next_deadline(), Some(now + seconds(10)));
    assert_eq!(pending.expire(now + seconds(9)), []);
    assert_eq!(pending.expire(now + seconds(10)), [(id.clone(), "a")]);
    assert_eq!(pending.take(&id), None);
    assert_eq!(pending.expire(now + seconds(99)), []);
}

#[test]
fn progress_starts_silence_anew_up_to_the_total() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let id = pending.open("a", PATIENCE, now);

    assert_eq!(pending.progress(&id, now + seconds(8)), Some(&mut "a"));
    assert_eq!(pending.next_deadline(), Some(now + seconds(18)));
    pending.progress(&id, now + seconds(17));
    assert_eq!(pending.next_deadline(), Some(now + seconds(25)));
    pending.progress(&id, now + seconds(24));
    assert_eq!(pending.next_deadline(), Some(now + seconds(25)));
    assert_eq!(pending.progress(&"stranger".into(), now), None);
    assert_eq!(pending.expire(now + seconds(25)), [(id, "a")]);
}

#[test]
fn requests_expire_soonest_first() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let patience = |silence| Patience {
        silence: seconds(silence),
        total: seconds(100),
    };
    for silence in [30, 10, 20, 40] {
        pending.open(silence, patience(silence), now);
    }

    let expired = pending.expire(now + seconds(30));

    let order: Vec<_> = expired.into_iter().map(|(_, value)| value).collect();
    assert_eq!(order, [10, 20, 30]);
    assert_eq!(pending.len(), 1);
}

#[test]
fn endless_patience_never_expires() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let endless = Patience {
        silence: Duration::MAX,
        total: Duration::MAX,
    };
    let id = pending.open("a", endless, now);
    pending.progress(&id, now + seconds(5));

    assert_eq!(pending.next_deadline(), None);
    assert_eq!(pending.expire(now + seconds(1_000_000)), []);
    assert_eq!(pending.get_mut(&id), Some(&mut "a"));
}

#[test]
fn a_lost_connection_gives_everything_back() {
    let (mut pending, now) = (Pending::new(), Instant::now());
    let ids = ["a", "b", "c"].map(|value| pending.open(value, PATIENCE, now));

    let drained = pending.drain();

    assert!(drained.iter().map(|(id, _)| id).eq(ids.iter()));
    assert!(pending.is_empty());
    assert_eq!(pending.expire(now + seconds(99)), []);
}
