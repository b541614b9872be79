use std::{sync::Arc, time::Duration};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn table(max_entries: usize, max_bytes: usize) -> ExpiringMap<u32, u32> {
    ExpiringMap::new("thing", max_entries, max_bytes)
}

fn put(
    table: &ExpiringMap<u32, u32>,
    key: u32,
    bytes: usize,
    seconds: u32,
) -> Result<(), StoreError> {
    let now = Instant::now();
    let place = (bytes, now + SECOND * seconds);
    table
        .insert(key, key, place, now, |_| (), |_, _| {})
        .map(|there| assert!(there.is_none()))
}

fn swept(table: &ExpiringMap<u32, u32>) -> Vec<u32> {
    let mut keys = Vec::new();
    table.sweep(Instant::now(), |key, _| keys.push(key));
    keys.sort_unstable();
    keys
}

#[tokio::test(start_paused = true)]
async fn later_expiries_are_found_by_a_later_sweep() {
    let table = table(100, 100);
    put(&table, 1, 0, 1).unwrap();
    put(&table, 3, 0, 3).unwrap();
    tokio::time::advance(SECOND * 2).await;

    assert_eq!(swept(&table), [1]);
    // Inserted after the sweep has computed the next expiry, and expires before it.
    put(&table, 2, 0, 0).unwrap();
    assert_eq!(swept(&table), [2]);
    tokio::time::advance(SECOND).await;
    assert_eq!(swept(&table), [3]);
    assert_eq!(table.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_map_is_not_scanned_before_an_entry_expires() {
    let table = table(1, 100);
    put(&table, 1, 0, 60).unwrap();
    assert!(put(&table, 2, 0, 60).is_err());
    assert_eq!(table.next_expiry_ms.load(Ordering::Relaxed), 60_000);

    // Wrong on purpose: only a sweep that scans the map finds the entry.
    table.next_expiry_ms.store(120_000, Ordering::Relaxed);
    tokio::time::advance(SECOND * 61).await;
    assert!(swept(&table).is_empty());
    tokio::time::advance(SECOND * 60).await;
    assert_eq!(swept(&table), [1]);
}

#[tokio::test(start_paused = true)]
async fn removed_entries_release_their_bytes() {
    let table = table(10, 100);
    let now = Instant::now();
    put(&table, 1, 40, 1).unwrap();
    put(&table, 2, 40, 60).unwrap();
    assert!(put(&table, 3, 40, 60).is_err());
    assert!(table.grow(&2, 20, now, |_| true, |_, _| {}).unwrap());
    assert!(table.grow(&2, 1, now, |_| true, |_, _| {}).is_err());
    assert!(!table.grow(&7, 0, now, |_| true, |_, _| {}).unwrap());

    tokio::time::advance(SECOND * 2).await;
    put(&table, 1, 40, 60).unwrap();
    assert!(!table.grow(&1, 0, now, |_| false, |_, _| {}).unwrap());
    table.remove(&2, Instant::now(), |_| true).unwrap();
    table.remove(&1, Instant::now(), |_| true).unwrap();

    assert_eq!(table.bytes.used.load(Ordering::Relaxed), 0);
    assert_eq!(table.len(), 0);
}

#[test]
fn counters_are_consistent_with_many_threads() {
    let table = Arc::new(table(50, 5_000));
    let threads: Vec<_> = (0..8_u32)
        .map(|thread| {
            let table = Arc::clone(&table);
            std::thread::spawn(move || {
                for round in 0..5_000 {
                    let (key, now) = (round % 100, Instant::now());
                    let lifetime = Duration::from_micros(u64::from(thread * 50));
                    let place = (100, now + lifetime);
                    let _ = table.insert(key, key, place, now, |_| (), |_, _| {});
                    assert!(table.len() <= 50);
                    if round % 3 == 0 {
                        table.remove(&(key / 2), now, |_| true);
                    }
                    if round % 64 == 0 {
                        table.sweep(now, |_, _| {});
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }

    table.sweep(Instant::now() + SECOND, |_, _| {});

    assert_eq!(table.len(), 0);
    assert_eq!(table.bytes.used.load(Ordering::Relaxed), 0);
    assert!(table.shards.iter().all(|shard| lock(shard).is_empty()));
}
