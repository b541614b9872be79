use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use turnbuckle_protocol::RequestId;

use super::{TICK, ticks};
use crate::{
    EventBatch, EventId, EventReplay, EventStore, InstanceId, InstanceSlot, SessionId,
    SessionOwner, Store, StoreError, StoreLimits, StreamHead, StreamId,
};

/// Checks the event log of a store.
pub async fn events(make: impl AsyncFn(StoreLimits) -> Store) {
    missed_events_are_replayed_in_order(&make).await;
    a_batch_opens_fills_and_finishes_a_stream(&make).await;
    a_priming_event_is_resumed_after_but_never_replayed(&make).await;
    a_stream_replays_only_its_own_events(&make).await;
    sessions_may_use_the_same_stream_ids(&make).await;
    a_replay_has_a_limit(&make).await;
    an_id_that_was_never_assigned_is_unknown(&make).await;
    another_session_cannot_replay(&make).await;
    a_repeated_append_changes_nothing(&make).await;
    a_number_that_is_left_out_is_a_lost_event(&make).await;
    the_head_of_a_stream_is_kept(&make).await;
    answered_requests_are_removed_from_the_head(&make).await;
    a_stream_of_another_writer_is_not_opened_again(&make).await;
    an_orphan_is_closed_once_and_its_writer_is_fenced(&make).await;
    an_orphan_is_closed_after_everything_the_client_has(&make).await;
    only_an_open_stream_of_the_dead_writer_is_an_orphan(&make).await;
    a_finished_stream_accepts_nothing_and_is_retained_for_a_while(&make).await;
    a_removed_session_has_no_streams(&make).await;
    the_oldest_events_are_removed_first_and_the_gap_is_reported(&make).await;
    an_event_larger_than_its_stream_stays_until_the_next(&make).await;
    finished_streams_make_room_and_open_ones_do_not(&make).await;
}

/// Checks that all streams of a store together are limited by [`EventLimits::max_total_bytes`](crate::EventLimits).
///
/// For stores in memory. A database has a limit of its own.
pub async fn event_totals(make: impl AsyncFn(StoreLimits) -> Store) {
    all_streams_together_are_bounded(&make).await;
    the_owner_with_the_largest_part_loses_events_first(&make).await;
}

/// A limit above the number of events of every stream here.
const ALL: usize = 1_000;

fn owner() -> SessionOwner {
    SessionOwner::caller("owner")
}

fn writer(number: u16) -> InstanceId {
    InstanceId {
        slot: InstanceSlot::new(number).unwrap(),
        nonce: u64::MAX - u64::from(number),
    }
}

/// The head of a stream that responds to these requests.
pub(super) fn head(owner: &SessionOwner, requests: &[RequestId]) -> StreamHead {
    StreamHead {
        writer: writer(1),
        owner: owner.clone(),
        requests: requests.to_vec(),
    }
}

fn data(texts: &[&str]) -> Vec<Bytes> {
    let texts = texts.iter();
    texts
        .map(|text| Bytes::copy_from_slice(text.as_bytes()))
        .collect()
}

/// A session with one stream, as its writer sees it.
struct Log {
    events: Arc<dyn EventStore>,
    session: SessionId,
    stream: StreamId,
    owner: SessionOwner,
    next: AtomicU64,
}

impl Log {
    /// Creates a log with a stream that is not opened yet.
    fn new(events: &Arc<dyn EventStore>) -> Self {
        Self::for_session(events, SessionId::generate().unwrap())
    }

    fn for_session(events: &Arc<dyn EventStore>, session: SessionId) -> Self {
        Self::for_owner(events, session, owner())
    }

    fn for_owner(events: &Arc<dyn EventStore>, session: SessionId, owner: SessionOwner) -> Self {
        static NEXT_STREAM: AtomicU64 = AtomicU64::new(1);
        Self {
            events: Arc::clone(events),
            session,
            stream: StreamId::new(NEXT_STREAM.fetch_add(1, Ordering::Relaxed)),
            owner,
            next: AtomicU64::new(1),
        }
    }

    /// Returns the id of the event with this number.
    fn id(&self, sequence: u64) -> EventId {
        EventId {
            stream: self.stream,
            sequence,
        }
    }

    fn head(&self) -> StreamHead {
        head(&self.owner, &[])
    }

    async fn try_append(&self, batch: EventBatch<'_>) -> Result<(), StoreError> {
        self.events.append(&self.session, &self.stream, batch).await
    }

    /// Appends events with the next numbers, and returns the id of the last one.
    async fn append_all(&self, texts: &[&str]) -> EventId {
        let events = data(texts);
        let first = self.next.fetch_add(events.len() as u64, Ordering::Relaxed);
        let batch = EventBatch {
            head: (first == 1).then(|| self.head()),
            first,
            events: &events,
            ..EventBatch::default()
        };
        self.try_append(batch).await.unwrap();
        self.id(first + events.len() as u64 - 1)
    }

    async fn append(&self, text: &str) -> EventId {
        self.append_all(&[text]).await
    }

    async fn after(&self, last: &EventId) -> Option<EventReplay> {
        let replayed = self.events.replay_after(&self.session, last, ALL);
        replayed.await.unwrap()
    }

    async fn try_finish(&self) -> Result<(), StoreError> {
        let batch = EventBatch {
            first: self.next.load(Ordering::Relaxed),
            end: true,
            ..EventBatch::default()
        };
        self.try_append(batch).await
    }

    async fn finish(&self) {
        self.try_finish().await.unwrap();
    }

    async fn close_orphan(&self, dead: InstanceId, after: u64, texts: &[&str]) -> bool {
        let events = data(texts);
        let closed = self
            .events
            .close_orphan(&self.session, &self.stream, &dead, after, &events);
        closed.await.unwrap()
    }
}

fn texts(replay: &EventReplay) -> Vec<&str> {
    let data = replay.events.iter().map(|event| &event.data);
    data.map(|data| std::str::from_utf8(data).unwrap())
        .collect()
}

fn numbers(replay: &EventReplay) -> Vec<u64> {
    let ids = replay.events.iter().map(|event| event.id);
    ids.map(|id| id.sequence).collect()
}

fn is_gone(appended: &Result<(), StoreError>) -> bool {
    matches!(appended, Err(StoreError::Gone { .. }))
}

async fn missed_events_are_replayed_in_order(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    log.append_all(&["a", "b"]).await;
    log.append("c").await;
    log.append_all(&["d"]).await;

    let replay = log.after(&log.id(2)).await.unwrap();
    let nothing = log.after(&log.id(4)).await.unwrap();

    assert_eq!(texts(&replay), ["c", "d"]);
    assert_eq!(numbers(&replay), [3, 4]);
    assert_eq!((replay.stream, replay.last), (log.stream, 4));
    assert!(!replay.finished && !replay.lost && !replay.more);
    assert!(nothing.events.is_empty() && !nothing.lost);
    // Resuming after the last replayed id returns the rest, without duplicates.
    log.append("e").await;
    assert_eq!(
        texts(&log.after(&replay.events[1].id).await.unwrap()),
        ["e"]
    );
}

async fn a_batch_opens_fills_and_finishes_a_stream(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    let events = data(&["", "progress", "response"]);
    let batch = EventBatch {
        head: Some(log.head()),
        first: 1,
        events: &events,
        end: true,
        ..EventBatch::default()
    };

    log.try_append(batch.clone()).await.unwrap();
    // The reply was lost, so the writer repeats everything.
    log.try_append(batch).await.unwrap();

    let replay = log.after(&log.id(1)).await.unwrap();
    assert_eq!(texts(&replay), ["progress", "response"]);
    assert!(replay.finished && !replay.lost);
    assert!(is_gone(
        &log.try_append(EventBatch {
            first: 4,
            events: &data(&["late"]),
            ..EventBatch::default()
        })
        .await
    ));
}

async fn a_priming_event_is_resumed_after_but_never_replayed(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let log = Log::new(&make(StoreLimits::default()).await.events);

    let first = log.append("").await;
    assert!(log.after(&first).await.unwrap().events.is_empty());
    log.append("a").await;
    log.append_all(&["", "b"]).await;

    let replay = log.after(&first).await.unwrap();
    assert_eq!(texts(&replay), ["a", "b"]);
    assert_eq!(numbers(&replay), [2, 4]);
    assert!(!replay.lost);
}

async fn a_stream_replays_only_its_own_events(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let one = Log::new(&events);
    let two = Log::for_session(&events, one.session);
    let start = one.append("").await;
    for text in ["a", "b"] {
        one.append(text).await;
        two.append("other").await;
    }

    assert_eq!(texts(&one.after(&start).await.unwrap()), ["a", "b"]);
}

async fn sessions_may_use_the_same_stream_ids(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let one = Log::new(&events);
    let two = Log {
        stream: one.stream,
        ..Log::new(&events)
    };
    one.append_all(&["", "one"]).await;
    two.append_all(&["", "two"]).await;

    one.finish().await;

    assert_eq!(texts(&one.after(&one.id(1)).await.unwrap()), ["one"]);
    let replay = two.after(&two.id(1)).await.unwrap();
    assert_eq!(texts(&replay), ["two"]);
    assert!(!replay.finished);
    events.remove_session(&one.session).await.unwrap();
    assert!(two.after(&two.id(1)).await.is_some());
}

async fn a_replay_has_a_limit(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    log.append_all(&["", "a", "b", "c", "d"]).await;
    log.finish().await;

    let mut last = log.id(1);
    let mut parts = Vec::new();
    loop {
        let replay = log.events.replay_after(&log.session, &last, 2);
        let replay = replay.await.unwrap().unwrap();
        assert!(replay.finished);
        assert_eq!(replay.last, 5);
        last = replay.events.last().unwrap().id;
        parts.push(texts(&replay).concat());
        if !replay.more {
            break;
        }
    }

    assert_eq!(parts, ["ab", "cd"]);
}

async fn an_id_that_was_never_assigned_is_unknown(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    let last = log.append("a").await;

    assert_eq!(log.after(&log.id(0)).await, None);
    let elsewhere = EventId {
        stream: StreamId::new(u64::MAX),
        ..last
    };
    assert_eq!(log.after(&elsewhere).await, None);
    for beyond in [last.sequence + 1, u64::MAX] {
        let replay = log.after(&log.id(beyond)).await;
        let replay = replay.expect("the writer may have sent more than it stored");
        assert!(replay.events.is_empty() && !replay.lost);
        assert_eq!(replay.last, last.sequence);
    }
    log.finish().await;
    for beyond in [last.sequence + 1, u64::MAX] {
        assert_eq!(log.after(&log.id(beyond)).await, None, "{beyond}");
    }
}

async fn another_session_cannot_replay(make: &impl AsyncFn(StoreLimits) -> Store) {
    // So little data that a store would not separate the two sessions.
    let mut limits = StoreLimits::default();
    limits.events.max_total_bytes = 1024 * 1024;
    let events = make(limits).await.events;
    let own = Log::new(&events);
    let id = own.append("secret").await;
    let other = Log::new(&events);
    other.append("").await;

    let foreign = Log {
        stream: own.stream,
        next: AtomicU64::new(2),
        ..Log::for_session(&events, other.session)
    };
    let batch = EventBatch {
        first: 2,
        events: &data(&["x"]),
        ..EventBatch::default()
    };

    assert!(is_gone(&foreign.try_append(batch).await));
    assert!(is_gone(&foreign.try_finish().await));
    assert!(!foreign.close_orphan(writer(1), 0, &["x"]).await);
    events.remove_session(&foreign.session).await.unwrap();
    assert_eq!(foreign.after(&id).await, None);
    let replay = own.after(&id).await.unwrap();
    assert!(replay.events.is_empty() && !replay.finished);
}

async fn a_repeated_append_changes_nothing(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    let first = data(&["", "a"]);
    let open = EventBatch {
        head: Some(log.head()),
        first: 1,
        events: &first,
        ..EventBatch::default()
    };
    log.try_append(open.clone()).await.unwrap();
    let second = data(&["b", "c"]);
    let more = EventBatch {
        first: 3,
        events: &second,
        ..EventBatch::default()
    };
    log.try_append(more.clone()).await.unwrap();

    // Repeated as they were, and together with what follows.
    log.try_append(open).await.unwrap();
    log.try_append(more).await.unwrap();
    let rest = data(&["b", "c", "d"]);
    let overlapping = EventBatch {
        first: 3,
        events: &rest,
        end: true,
        ..EventBatch::default()
    };
    log.try_append(overlapping.clone()).await.unwrap();
    log.try_append(overlapping).await.unwrap();

    let replay = log.after(&log.id(1)).await.unwrap();
    assert_eq!(texts(&replay), ["a", "b", "c", "d"]);
    assert_eq!(numbers(&replay), [2, 3, 4, 5]);
    assert!(replay.finished && !replay.lost);
    assert_eq!(replay.last, 5);
}

async fn a_number_that_is_left_out_is_a_lost_event(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    log.append_all(&["", "a"]).await;

    let batch = EventBatch {
        first: 5,
        events: &data(&["b"]),
        ..EventBatch::default()
    };
    log.try_append(batch).await.unwrap();

    for (last, is_lost) in [(1, true), (2, true), (4, false)] {
        let replay = log.after(&log.id(last)).await.unwrap();
        assert_eq!(texts(&replay).last(), Some(&"b"), "{last}");
        assert_eq!(replay.lost, is_lost, "{last}");
    }
}

async fn the_head_of_a_stream_is_kept(make: &impl AsyncFn(StoreLimits) -> Store) {
    let mut limits = StoreLimits::default();
    limits.events.max_events = 2;
    let log = Log::new(&make(limits).await.events);
    let requests = [RequestId::from(7), RequestId::from("seven")];
    let batch = EventBatch {
        head: Some(head(&owner(), &requests)),
        first: 1,
        events: &data(&["", "a"]),
        ..EventBatch::default()
    };
    log.try_append(batch).await.unwrap();
    for number in 3..10 {
        let batch = EventBatch {
            first: number,
            events: &data(&["b"]),
            ..EventBatch::default()
        };
        log.try_append(batch).await.unwrap();
    }

    let replay = log.after(&log.id(1)).await.unwrap();

    assert_eq!(replay.writer, writer(1));
    let mut unanswered = replay.unanswered;
    unanswered.sort_by_key(ToString::to_string);
    let mut expected = requests.to_vec();
    expected.sort_by_key(ToString::to_string);
    assert_eq!(unanswered, expected);
}

async fn answered_requests_are_removed_from_the_head(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    let requests = ["a", "b", "c"].map(RequestId::from);
    let batch = EventBatch {
        head: Some(head(&owner(), &requests)),
        first: 1,
        events: &data(&[""]),
        ..EventBatch::default()
    };
    log.try_append(batch).await.unwrap();
    let answer = EventBatch {
        first: 2,
        events: &data(&["b is done"]),
        answered: &requests[1..2],
        ..EventBatch::default()
    };
    log.try_append(answer.clone()).await.unwrap();
    log.try_append(answer).await.unwrap();

    let mut unanswered = log.after(&log.id(1)).await.unwrap().unanswered;
    unanswered.sort_by_key(ToString::to_string);
    assert_eq!(unanswered, [requests[0].clone(), requests[2].clone()]);
    log.finish().await;
    assert_eq!(log.after(&log.id(1)).await.unwrap().unanswered, []);
}

async fn a_stream_of_another_writer_is_not_opened_again(make: &impl AsyncFn(StoreLimits) -> Store) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    log.append_all(&["", "a"]).await;

    let batch = EventBatch {
        head: Some(StreamHead {
            writer: writer(2),
            ..log.head()
        }),
        first: 1,
        events: &data(&["", "x", "y"]),
        ..EventBatch::default()
    };

    assert!(is_gone(&log.try_append(batch).await));
    let replay = log.after(&log.id(1)).await.unwrap();
    assert_eq!(texts(&replay), ["a"]);
    assert_eq!(replay.writer, writer(1));
}

async fn an_orphan_is_closed_once_and_its_writer_is_fenced(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let log = Log::new(&make(StoreLimits::default()).await.events);
    log.append_all(&["", "a"]).await;

    assert!(log.close_orphan(writer(1), 0, &["stopped"]).await);
    assert!(!log.close_orphan(writer(1), 0, &["stopped"]).await);

    let replay = log.after(&log.id(1)).await.unwrap();
    assert_eq!(texts(&replay), ["a", "stopped"]);
    assert!(replay.finished && replay.unanswered.is_empty());
    // The writer continues after a pause. Nothing that it appends is accepted, not even what is in the log.
    for (first, text) in [(2, "a"), (3, "late"), (4, "late")] {
        let batch = EventBatch {
            first,
            events: &data(&[text]),
            ..EventBatch::default()
        };
        assert!(is_gone(&log.try_append(batch).await), "{first}");
    }
    assert!(is_gone(&log.try_finish().await));
    assert_eq!(log.after(&log.id(1)).await.unwrap(), replay);
}

async fn an_orphan_is_closed_after_everything_the_client_has(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let events = make(StoreLimits::default()).await.events;
    for (after, expected) in [(0, 3), (2, 3), (5, 6)] {
        let log = Log::new(&events);
        log.append_all(&["", "a"]).await;

        assert!(log.close_orphan(writer(1), after, &["stopped"]).await);

        let replay = log.after(&log.id(2.max(after))).await.unwrap();
        assert_eq!(texts(&replay), ["stopped"], "{after}");
        assert_eq!(numbers(&replay), [expected]);
        assert!(!replay.lost);
    }
}

async fn only_an_open_stream_of_the_dead_writer_is_an_orphan(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let events = make(StoreLimits::default()).await.events;
    let running = Log::new(&events);
    let finished = Log::new(&events);
    for log in [&running, &finished] {
        log.append_all(&["", "a"]).await;
    }
    finished.finish().await;
    let same_slot = InstanceId {
        nonce: 1,
        ..writer(1)
    };

    assert!(!running.close_orphan(writer(2), 0, &["x"]).await);
    assert!(!running.close_orphan(same_slot, 0, &["x"]).await);
    assert!(!finished.close_orphan(writer(1), 0, &["x"]).await);
    assert!(!Log::new(&events).close_orphan(writer(1), 0, &["x"]).await);

    for log in [&running, &finished] {
        assert_eq!(texts(&log.after(&log.id(1)).await.unwrap()), ["a"]);
    }
    running.append("b").await;
}

async fn a_finished_stream_accepts_nothing_and_is_retained_for_a_while(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut limits = StoreLimits::default();
    limits.events.retention = TICK * 3;
    let log = Log::new(&make(limits).await.events);
    let first = log.append("").await;
    log.append("answer").await;
    log.finish().await;

    let late = EventBatch {
        first: 3,
        events: &data(&["late"]),
        ..EventBatch::default()
    };
    assert!(is_gone(&log.try_append(late).await));
    ticks(1).await;
    log.finish().await;
    let replay = log.after(&first).await.unwrap();
    assert_eq!(texts(&replay), ["answer"]);
    assert!(replay.finished);
    ticks(3).await;
    assert_eq!(log.after(&first).await, None);
    log.events.sweep().await.unwrap();
    assert!(is_gone(&log.try_finish().await));
}

async fn a_removed_session_has_no_streams(make: &impl AsyncFn(StoreLimits) -> Store) {
    let events = make(StoreLimits::default()).await.events;
    let gone = Log::new(&events);
    let kept = Log::new(&events);
    let gone_id = gone.append("a").await;
    let kept_id = kept.append("a").await;

    events.remove_session(&gone.session).await.unwrap();

    assert_eq!(gone.after(&gone_id).await, None);
    assert!(kept.after(&kept_id).await.is_some());
    let batch = EventBatch {
        first: 2,
        events: &data(&["b"]),
        ..EventBatch::default()
    };
    assert!(is_gone(&gone.try_append(batch).await));
    assert!(!gone.close_orphan(writer(1), 0, &["x"]).await);
}

async fn the_oldest_events_are_removed_first_and_the_gap_is_reported(
    make: &impl AsyncFn(StoreLimits) -> Store,
) {
    let mut few = StoreLimits::default();
    few.events.max_events = 3;
    let mut small = StoreLimits::default();
    small.events.max_stream_bytes = 3;

    for limits in [few, small] {
        let log = Log::new(&make(limits).await.events);
        let start = log.append("").await;
        log.append("a").await;
        log.append_all(&["b", "c", "d"]).await;
        log.append("e").await;

        let from_start = log.after(&start).await.unwrap();
        let from_a = log.after(&log.id(2)).await.unwrap();
        let from_b = log.after(&log.id(3)).await.unwrap();

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
    let log = Log::new(&make(limits).await.events);
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
    let open = Log::new(&events);
    let finished = Log::for_session(&events, open.session);
    let open_id = open.append("a").await;
    let finished_id = finished.append("a").await;
    let elsewhere = Log::new(&events);
    let third = Log::for_session(&events, open.session);

    let batch = EventBatch {
        head: Some(third.head()),
        first: 1,
        events: &data(&["a"]),
        ..EventBatch::default()
    };
    let refused = third.try_append(batch).await;
    assert!(matches!(refused, Err(StoreError::TooMany { limit: 2, .. })));
    assert_eq!(third.after(&third.id(1)).await, None);
    finished.finish().await;
    third.append("a").await;

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
    let modest = Log::new(&events);
    let start = modest.append("").await;
    modest.append("the response").await;
    for _ in 0..100 {
        let session = SessionId::generate().unwrap();
        let log = Log::for_owner(&events, session, SessionOwner::caller("greedy"));
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
        let log = Log::new(&events);
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
    // Streams and the ids of their requests use memory too, so the number of empty ones is limited.
    let mut opened = 0;
    let session = SessionId::generate().unwrap();
    while opened < 100_000 {
        let log = Log::for_session(&events, session);
        let batch = EventBatch {
            head: Some(log.head()),
            first: 1,
            ..EventBatch::default()
        };
        if log.try_append(batch).await.is_err() {
            break;
        }
        opened += 1;
    }
    assert!(opened < 100_000);
}
