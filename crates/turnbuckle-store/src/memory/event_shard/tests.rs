use std::time::Duration;

use super::*;

/// Pseudorandom numbers that are the same in every run.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn small() -> EventLimits {
    EventLimits {
        max_events: 5,
        max_stream_bytes: 500,
        max_streams: 4,
        max_total_bytes: 10_000,
        retention: Duration::from_secs(3),
    }
}

/// The first batch of a stream of the owner with this number.
fn opening(owner: u64, events: &[Bytes]) -> EventBatch<'_> {
    EventBatch {
        head: Some(StreamHead {
            writer: InstanceId::default(),
            owner: SessionOwner::caller(owner.to_string()),
            requests: Vec::new(),
        }),
        first: 1,
        events,
        ..EventBatch::default()
    }
}

/// Appends an event with the next number.
fn append_next(
    shard: &mut EventShard,
    session: SessionId,
    stream: StreamId,
    data: Vec<u8>,
) -> Result<(), StoreError> {
    let known = shard.streams.get(&key(session, stream));
    let batch = EventBatch {
        first: known.map_or(1, |known| known.last + 1),
        events: &[data.into()],
        ..EventBatch::default()
    };
    shard.append(&session, stream, batch, Instant::now())
}

fn end() -> EventBatch<'static> {
    EventBatch {
        end: true,
        ..EventBatch::default()
    }
}

fn key(session: SessionId, stream: StreamId) -> StreamKey {
    StreamKey { session, stream }
}

/// Returns the number of entries in the queues of events.
fn queued_events(shard: &EventShard) -> usize {
    let queues = shard.owners.logs.iter();
    queues.map(|owner_log| owner_log.events.len()).sum()
}

fn real_cost(shard: &EventShard) -> usize {
    let events = shard.streams.values().flat_map(|stream| &stream.log);
    let data: usize = events.map(|(_, data)| data.len() + EVENT_COST).sum();
    let heads: usize = shard.streams.values().map(|stream| stream.head_cost).sum();
    data + heads
}

fn check(shard: &EventShard) {
    assert_eq!(shard.used, real_cost(shard));
    assert!(shard.used <= shard.budget);
    let mut listed = 0;
    for (session, streams) in &shard.sessions {
        assert!((1..=4).contains(&streams.len()));
        let is_known = |stream: &StreamId| shard.streams.contains_key(&key(*session, *stream));
        assert!(streams.iter().all(is_known));
        listed += streams.len();
    }
    assert_eq!(listed, shard.streams.len());
    let events: usize = shard.streams.values().map(|stream| stream.log.len()).sum();
    let owner_logs = &shard.owners.logs;
    let counted: usize = owner_logs
        .iter()
        .map(|owner_log| owner_log.event_count)
        .sum();
    assert_eq!(counted, events);
    let used: usize = owner_logs.iter().map(|owner_log| owner_log.used).sum();
    assert_eq!(used, shard.used);
    let count: usize = owner_logs
        .iter()
        .map(|owner_log| owner_log.stream_count)
        .sum();
    assert_eq!(count, shard.streams.len());
    assert!(queued_events(shard) <= 2 * shard.budget / EVENT_COST + 64 * owner_logs.len());
    assert!(queued_events(shard) >= events);
}

#[tokio::test(start_paused = true)]
async fn counters_are_consistent_after_any_sequence_of_steps() {
    let mut numbers = PseudoRandom(7);
    let mut shard = EventShard::new(small(), 10_000);
    let sessions: Vec<_> = (0..10).map(|_| SessionId::generate().unwrap()).collect();
    let mut streams = Vec::new();
    let mut seen = [0; 6];

    for step in 0..20_000 {
        let session = sessions[numbers.below(10) as usize];
        let known = (!streams.is_empty()).then(|| {
            streams[streams.len() - 1 - numbers.below(streams.len().min(40) as u64) as usize]
        });
        let action = numbers.below(12) as usize;
        let now = Instant::now();
        match (action, known) {
            (0, _) => {
                let id = StreamId::new(step);
                let batch = opening(numbers.below(3), &[]);
                if shard.append(&session, id, batch, now).is_ok() {
                    streams.push((session, id));
                    seen[0] += 1;
                }
            }
            (1..=8, Some((session, id))) => {
                let data = vec![0; numbers.below(300) as usize];
                let has_data = !data.is_empty();
                if append_next(&mut shard, session, id, data).is_ok() {
                    seen[1] += 1;
                    // Stale entries never outnumber the live ones by much.
                    let owner_log = &shard.owners.logs[shard.streams[&key(session, id)].owner];
                    let max_queued = 2 * owner_log.event_count + 64;
                    assert!(!has_data || owner_log.events.len() <= max_queued);
                }
            }
            (9, Some((session, id))) => {
                if numbers.below(2) == 0 {
                    let _ = shard.append(&session, id, end(), now);
                } else {
                    let events = ["stopped".into()];
                    shard.close_orphan(&session, id, &InstanceId::default(), 3, &events, now);
                }
                seen[2] += 1;
            }
            (10, _) if numbers.below(20) == 0 => {
                shard.remove_session(&session);
                seen[3] += 1;
            }
            (11, _) => {
                tokio::time::advance(Duration::from_millis(100)).await;
                let before = shard.streams.len();
                shard.expire(Instant::now());
                seen[4] += before - shard.streams.len();
            }
            _ => seen[5] += 1,
        }
        check(&shard);
    }

    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    for session in &sessions {
        shard.remove_session(session);
    }
    assert_eq!(shard.used, 0);
}

#[tokio::test(start_paused = true)]
async fn removed_streams_leave_nothing_behind() {
    let mut shard = EventShard::new(small(), 10_000);
    let session = SessionId::generate().unwrap();

    for number in 0..100_000 {
        let id = StreamId::new(number);
        let events = ["x".into()];
        let batch = EventBatch {
            end: true,
            ..opening(0, &events)
        };
        shard.append(&session, id, batch, Instant::now()).unwrap();
        shard.remove_session(&session);
    }

    assert!(queued_events(&shard) <= 66);
    assert!(shard.owners.logs.len() <= 1 && shard.owners.indices.is_empty());
    assert!(shard.finished.len() <= 66);
    assert!(shard.streams.is_empty() && shard.sessions.is_empty());
}

#[test]
fn the_largest_owner_loses_its_events_and_others_keep_theirs() {
    let mut shard = EventShard::new(small(), 10_000);
    let sessions: Vec<_> = (0..31).map(|_| SessionId::generate().unwrap()).collect();
    let now = Instant::now();
    let modest = StreamId::new(0);
    let response = ["the response".into()];
    shard
        .append(&sessions[0], modest, opening(0, &response), now)
        .unwrap();

    // Another owner fills the log, with many sessions.
    for (session, number) in sessions[1..].iter().zip(1..) {
        let id = StreamId::new(number);
        let events = vec![Bytes::from(vec![0; 100]); 3];
        shard.append(session, id, opening(1, &events), now).unwrap();
        check(&shard);
    }

    assert_eq!(shard.streams[&key(sessions[0], modest)].log.len(), 1);
    let oldest = &shard.streams[&key(sessions[1], StreamId::new(1))];
    assert!(oldest.log.is_empty() && oldest.lost > 0);
}

#[test]
fn owners_of_equal_size_lose_events_in_turn() {
    let mut shard = EventShard::new(small(), 10_000);
    let session = SessionId::generate().unwrap();
    for number in 0..4 {
        let id = StreamId::new(number);
        shard
            .append(&session, id, opening(number, &[]), Instant::now())
            .unwrap();
    }

    for round in 0..100 {
        let data = vec![0; 400 + round % 7];
        for number in 0..4 {
            append_next(&mut shard, session, StreamId::new(number), data.clone()).unwrap();
            check(&shard);
        }
    }

    for number in 0..4 {
        assert!(
            !shard.streams[&key(session, StreamId::new(number))]
                .log
                .is_empty(),
            "{number}"
        );
    }
}
