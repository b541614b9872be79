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

fn owner(number: u64) -> SessionOwner {
    SessionOwner::caller(number.to_string())
}

/// Returns the number of entries in the queues of events.
fn queued_events(shard: &EventShard) -> usize {
    let queues = shard.owners.logs.iter();
    queues.map(|owner_log| owner_log.events.len()).sum()
}

fn real_cost(shard: &EventShard) -> usize {
    let events = shard.streams.values().flat_map(|stream| &stream.log);
    let data: usize = events.map(|(_, data)| data.len() + EVENT_COST).sum();
    data + shard.streams.len() * STREAM_COST
}

fn check(shard: &EventShard) {
    assert_eq!(shard.used, real_cost(shard));
    assert!(shard.used <= shard.budget);
    let mut listed = 0;
    for SessionStreams { open, finished } in shard.sessions.values() {
        assert!(open.iter().all(|id| !shard.streams[id].finished));
        assert!(finished.iter().all(|id| shard.streams[id].finished));
        assert!((1..=4).contains(&(open.len() + finished.len())));
        listed += open.len() + finished.len();
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
        match (action, known) {
            (0, _) => {
                let id = StreamId::new(step);
                let owner = owner(numbers.below(3));
                if shard.open_stream(session, &owner, id).is_ok() {
                    streams.push((session, id));
                    seen[0] += 1;
                }
            }
            (1..=8, Some((owner, id))) => {
                let data = vec![0; numbers.below(300) as usize];
                let has_data = !data.is_empty();
                if shard.append(&owner, id, data.into()).is_ok() {
                    seen[1] += 1;
                    // Stale entries never outnumber the live ones by much.
                    let owner_log = &shard.owners.logs[shard.streams[&id].owner];
                    let max_queued = 2 * owner_log.event_count + 64;
                    assert!(!has_data || owner_log.events.len() <= max_queued);
                }
            }
            (9, Some((owner, id))) => {
                shard.finish_stream(&owner, id, Instant::now());
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
        shard.open_stream(session, &owner(0), id).unwrap();
        shard.append(&session, id, "x".into()).unwrap();
        shard.finish_stream(&session, id, Instant::now());
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
    let modest = StreamId::new(0);
    shard.open_stream(sessions[0], &owner(0), modest).unwrap();
    shard
        .append(&sessions[0], modest, "the response".into())
        .unwrap();

    // Another owner fills the log, with many sessions.
    for (session, number) in sessions[1..].iter().zip(1..) {
        let id = StreamId::new(number);
        shard.open_stream(*session, &owner(1), id).unwrap();
        for _ in 0..3 {
            shard.append(session, id, vec![0; 100].into()).unwrap();
        }
        check(&shard);
    }

    assert_eq!(shard.streams[&modest].log.len(), 1);
    let oldest = &shard.streams[&StreamId::new(1)];
    assert!(oldest.log.is_empty() && oldest.lost > 0);
}

#[test]
fn owners_of_equal_size_lose_events_in_turn() {
    let mut shard = EventShard::new(small(), 10_000);
    let session = SessionId::generate().unwrap();
    for number in 0..4 {
        let id = StreamId::new(number);
        shard.open_stream(session, &owner(number), id).unwrap();
    }

    for round in 0..100 {
        let data = vec![0; 400 + round % 7];
        for number in 0..4 {
            shard
                .append(&session, StreamId::new(number), data.clone().into())
                .unwrap();
            check(&shard);
        }
    }

    for number in 0..4 {
        assert!(
            !shard.streams[&StreamId::new(number)].log.is_empty(),
            "{number}"
        );
    }
}
