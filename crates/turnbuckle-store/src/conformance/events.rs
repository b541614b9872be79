use std::sync::Arc;

use bytes::Bytes;

use super::{TICK, ticks};
use crate::{
    EventId, EventReplay, EventStore, SessionId, SessionOwner, Store, StoreError, StoreLimits,
    StreamId,
};

/// Checks the event log of a store.
pub async fn events(make: impl AsyncFn(StoreLimits) -> Store) {
    missed_events_are_replayed_in_order(&make).await;
    a_priming_event_is_resumed_after_but_never_replayed(&make).await;
    a_stream_replays_only_its_own_events(&make).await;
    an_id_that_was_never_assigned_is_unknown(&make).await;
    another_session_cannot_replay(&make).await;
    a_finished_stream_accepts_nothing_and_is_retained_for_a_while(&make).await;
    a_removed_session_has_no_streams(&make).await;
    the_oldest_events_are_removed_first_and_the_gap_is_reported(&make).await;
    an_event_larger_than_its_stream_stays_until_the_next(&make).await;
    finished_streams_make_room_and_open_ones_do_not(&make).await;
    all_streams_together_are_bounded(&make).await;
    the_owner_with_the_largest_part_loses_events_first(&make).await;
    one_event_goes_to_many_streams(&make).await;
}

fn owner() -> SessionOwner {
    SessionOwner::caller("owner")
}

/// A session with one stream.
struct Log {
    events: Arc<dyn EventStore>,
    session: SessionId,
    stream: StreamId,
}

impl Log {
    async fn new(events: &Arc<dyn EventStore>) -> Self {
        Self::for_session(events, SessionId::generate().unwrap()).await
    }

    async fn for_session(events: &Arc<dyn EventStore>, session: SessionId) -> Self {
        Self::for_owner(events, session, &owner()).await
    }

    async fn for_owner(
        events: &Arc<dyn EventStore>,
        session: SessionId,
        owner: &SessionOwner,
    ) -> Self {
        Self {
            events: Arc::clone(events),
            session,
            stream: events.open_stream(&session, owner).await.unwrap(),
        }
    }

    async fn append(&self, data: &str) -> EventId {
        let data = Bytes::copy_from_slice(data.as_bytes());
        let appended = self.events.append(&self.session, &self.stream, data);
        appended.await.unwrap()
    }

    async fn after(&self, last: &EventId) -> Option<EventReplay> {
        self.events.replay_after(&self.session, last).await.unwrap()
    }

    async fn finish(&self) {
        let finished = self.events.finish_stream(&self.session, &self.stream);
        finished.await.unwrap();
    }
}

fn texts(replay: &EventReplay) -> Vec<&str> {
    let data = replay.events.iter().map(|event| &event.data);
    data.map(|data| std::str::from_utf8(data).unwrap())
        .collect()
}

async fn missed_events_are_replayed_in_order(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events).await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c", "d"] {
        ids.push(log.append(text).await);
    }

    let replay = log.after(&ids[1]).await.unwrap();
    let nothing = log.after(&ids[3]).await.unwrap();

    assert_eq!(texts(&replay), ["c", "d"]);
    assert_eq!(replay.stream, log.stream);
    assert!(
        replay
            .events
            .iter()
            .map(|event| event.id)
            .eq(ids[2..].iter().copied())
    );
    assert!(!replay.finished && !replay.lost);
    assert!(nothing.events.is_empty() && !nothing.lost);
    // Resuming after the last replayed id returns the rest, without duplicates.
    log.append("e").await;
    assert_eq!(
        texts(&log.after(&replay.events[1].id).await.unwrap()),
        ["e"]
    );
}

async fn one_event_goes_to_many_streams(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let mut logs = Vec::new();
    for _ in 0..100 {
        let log = Log::new(&events).await;
        // Two of the streams belong to the same session.
        logs.push(Log::for_session(&events, log.session).await);
        logs.push(log);
    }
    let mut before = Vec::new();
    for log in &logs {
        before.push(log.append("before").await);
    }
    let (finished, foreign) = (3, 70);
    logs[finished].finish().await;
    let mut streams: Vec<_> = logs.iter().map(|log| (log.session, log.stream)).collect();
    streams[foreign].0 = SessionId::generate().unwrap();

    let appended = events.append_to_all(&streams, "all".into()).await;

    assert_eq!(appended.len(), logs.len());
    for (at, appended) in appended.into_iter().enumerate() {
        let replay = logs[at].after(&before[at]).await.unwrap();
        if [finished, foreign].contains(&at) {
            assert!(matches!(appended, Err(StoreError::Gone { .. })), "{at}");
            assert!(replay.events.is_empty(), "{at}");
        } else {
            assert_eq!(texts(&replay), ["all"]);
            assert_eq!(replay.events[0].id, appended.unwrap(), "{at}");
        }
    }
    assert!(events.append_to_all(&[], "all".into()).await.is_empty());
}

async fn a_priming_event_is_resumed_after_but_never_replayed(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let log = Log::new(&make(StoreLimits::default()).await.events).await;

    let first = log.append("").await;
    assert!(log.after(&first).await.unwrap().events.is_empty());
    log.append("a").await;
    log.append("").await;
    log.append("b").await;

    let replay = log.after(&first).await.unwrap();
    assert_eq!(texts(&replay), ["a", "b"]);
    assert!(!replay.lost);
}

async fn a_stream_replays_only_its_own_events(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let one = Log::new(&events).await;
    let two = Log::for_session(&events, one.session).await;
    let start = one.append("").await;
    for text in ["a", "b"] {
        one.append(text).await;
        two.append("other").await;
    }

    assert_ne!(one.stream, two.stream);
    assert_eq!(texts(&one.after(&start).await.unwrap()), ["a", "b"]);
}

async fn an_id_that_was_never_assigned_is_unknown(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events).await;
    let last = log.append("a").await;

    for sequence in [0, last.sequence + 1, u64::MAX] {
        let unknown = EventId { sequence, ..last };
        assert_eq!(log.after(&unknown).await, None, "{unknown}");
    }
    let elsewhere = EventId {
        stream: StreamId::new(u64::MAX),
        ..last
    };
    assert_eq!(log.after(&elsewhere).await, None);
}

async fn another_session_cannot_replay(make: &impl AsyncFn(StoreLimits) -> Store) {
    // So little data that a store would not separate the two sessions.
    let mut limits = StoreLimits::default();
    limits.events.max_total_bytes = 1024 * 1024;
    let events = make(limits).await.events;
    let own = Log::new(&events).await;
    let id = own.append("secret").await;
    let other = Log::new(&events).await;
    other.append("").await;

    let foreign = other.session;
    let pushed = events.append(&foreign, &own.stream, "x".into()).await;
    events.finish_stream(&foreign, &own.stream).await.unwrap();
    events.remove_session(&foreign).await.unwrap();

    assert_eq!(events.replay_after(&foreign, &id).await.unwrap(), None);
    assert!(matches!(pushed, Err(StoreError::Gone { .. })));
    let replay = own.after(&id).await.unwrap();
    assert!(replay.events.is_empty() && !replay.finished);
}

async fn a_finished_stream_accepts_nothing_and_is_retained_for_a_while(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.events.retention = TICK * 3;
    let log = Log::new(&make(limits).await.events).await;
    let first = log.append("").await;
    log.append("answer").await;
    log.finish().await;

    let late = log.events.append(&log.session, &log.stream, "late".into());
    assert!(matches!(late.await, Err(StoreError::Gone { .. })));
    ticks(1).await;
    log.finish().await;
    let replay = log.after(&first).await.unwrap();
    assert_eq!(texts(&replay), ["answer"]);
    assert!(replay.finished);
    ticks(3).await;
    assert_eq!(log.after(&first).await, None);
    log.events.sweep().await.unwrap();
    log.finish().await;
}

async fn a_removed_session_has_no_streams(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let gone = Log::new(&events).await;
    let kept = Log::new(&events).await;
    let gone_id = gone.append("a").await;
    let kept_id = kept.append("a").await;

    events.remove_session(&gone.session).await.unwrap();

    assert_eq!(gone.after(&gone_id).await, None);
    assert!(kept.after(&kept_id).await.is_some());
    let appended = events.append(&gone.session, &gone.stream, "b".into()).await;
    assert!(matches!(appended, Err(StoreError::Gone { .. })));
}

async fn the_oldest_events_are_removed_first_and_the_gap_is_reported(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut few = StoreLimits::default();
    few.events.max_events = 3;
    let mut small = StoreLimits::default();
    small.events.max_stream_bytes = 3;

    for limits in [few, small] {
        let log = Log::new(&make(limits).await.events).await;
        let start = log.append("").await;
        let mut ids = Vec::new();
        for text in ["a", "b", "c", "d", "e"] {
            ids.push(log.append(text).await);
        }

        let from_start = log.after(&start).await.unwrap();
        let from_a = log.after(&ids[0]).await.unwrap();
        let from_b = log.after(&ids[1]).await.unwrap();

        assert_eq!(texts(&from_start), ["c", "d", "e"]);
        assert!(from_start.lost);
        assert_eq!(texts(&from_a), ["c", "d", "e"]);
        assert!(from_a.lost);
        assert_eq!(texts(&from_b), ["c", "d", "e"]);
        assert!(!from_b.lost);
    }
}

async fn an_event_larger_than_its_stream_stays_until_the_next(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.events.max_stream_bytes = 10;
    let log = Log::new(&make(limits).await.events).await;
    let start = log.append("").await;
    let first = log.append("a").await;

    let large = log.append("12345678901").await;
    let replay = log.after(&first).await.unwrap();
    assert_eq!(texts(&replay), ["12345678901"]);
    assert!(!replay.lost);
    assert!(log.after(&start).await.unwrap().lost);

    log.append("b").await;
    assert!(log.after(&first).await.unwrap().lost);
    let replay = log.after(&large).await.unwrap();
    assert_eq!(texts(&replay), ["b"]);
    assert!(!replay.lost);
}

async fn finished_streams_make_room_and_open_ones_do_not(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.events.max_streams = 2;
    let events = make(limits).await.events;
    let open = Log::new(&events).await;
    let finished = Log::for_session(&events, open.session).await;
    let open_id = open.append("a").await;
    let finished_id = finished.append("a").await;
    let elsewhere = Log::new(&events).await;

    let refused = events.open_stream(&open.session, &owner()).await;
    assert!(matches!(refused, Err(StoreError::TooMany { limit: 2, .. })));
    finished.finish().await;
    events.open_stream(&open.session, &owner()).await.unwrap();

    assert!(open.after(&open_id).await.is_some());
    assert_eq!(finished.after(&finished_id).await, None);
    elsewhere.append("a").await;
}

async fn the_owner_with_the_largest_part_loses_events_first(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    const KIB: usize = 1024;
    let mut limits = StoreLimits::default();
    limits.events.max_total_bytes = 64 * KIB;
    limits.events.max_stream_bytes = 64 * KIB;
    let events = make(limits).await.events;
    let modest = Log::new(&events).await;
    let start = modest.append("").await;
    modest.append("the response").await;
    let greedy = SessionOwner::caller("greedy");
    for _ in 0..100 {
        let session = SessionId::generate().unwrap();
        let log = Log::for_owner(&events, session, &greedy).await;
        log.append(&"x".repeat(KIB)).await;
    }

    let replay = modest.after(&start).await.unwrap();

    assert_eq!(texts(&replay), ["the response"]);
}

async fn all_streams_together_are_bounded(make: &impl AsyncFn(StoreLimits) -> Store) {
    const KIB: usize = 1024;
    let mut limits = StoreLimits::default();
    limits.events.max_total_bytes = 64 * KIB;
    limits.events.max_stream_bytes = 64 * KIB;
    let events = make(limits).await.events;
    let data = "x".repeat(KIB);
    let mut logs = Vec::new();
    for _ in 0..100 {
        let log = Log::new(&events).await;
        let start = log.append("").await;
        log.append(&data).await;
        logs.push((log, start));
    }

    let mut kept = Vec::new();
    for (log, start) in &logs {
        let replay = log.after(start).await.unwrap();
        assert_eq!(replay.lost, replay.events.is_empty());
        kept.push(!replay.lost);
    }

    let count = kept.iter().filter(|kept| **kept).count();
    assert!((1..=64).contains(&count), "{count} KiB are kept of 64");
    assert!(kept.is_sorted(), "a younger event went before an older one");
    // Streams use memory too, so the number of empty ones is limited.
    let mut opened = 0;
    let session = SessionId::generate().unwrap();
    while opened < 100_000 && events.open_stream(&session, &owner()).await.is_ok() {
        opened += 1;
    }
    assert!(opened < 100_000);
}
