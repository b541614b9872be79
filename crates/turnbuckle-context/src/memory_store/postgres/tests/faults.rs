use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use turnbuckle_test_bed::{FaultProxy, NetworkFault};

use super::*;
use crate::{
    ContextError,
    memory_store::{ExportEntry, MemoryStoreError},
};

/// Returns the URL of a proxy in front of a server.
fn through(proxy: &FaultProxy) -> String {
    format!(
        "postgres://postgres@{}/postgres?sslmode=disable",
        proxy.address()
    )
}

/// Asserts that all acknowledged items are stored, and each once.
async fn assert_stored(store: &dyn MemoryStore, partition: &Partition, acknowledged: &[String]) {
    let mut stored = bodies(store, partition).await;
    for body in acknowledged {
        assert!(
            stored.contains(body),
            "an acknowledged save is lost: {body}"
        );
    }
    stored.sort();
    let count = stored.len();
    stored.dedup();
    assert_eq!(stored.len(), count, "no save is stored twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_no_acknowledged_save() {
    let mut server = start();
    let store = Arc::new(connect(&server.url()).await);
    let shared = Partition::shared(&ada());
    let done = Arc::new(AtomicUsize::new(0));
    let saving: Vec<_> = (0..4)
        .map(|writer| {
            let (store, shared, done) = (store.clone(), shared.clone(), done.clone());
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    let body = format!("writer {writer} number {number}");
                    match store.save(&shared, checkpoint(&body)).await {
                        Ok(_) => acknowledged.push(body),
                        Err(MemoryStoreError::TryAgain(_)) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    if done.load(Ordering::Relaxed) > 0 && number >= 20 {
                        return acknowledged;
                    }
                }
                acknowledged
            })
        })
        .collect();
    let server = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(300));
        server.restart().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        server.kill().unwrap();
        server.restart().unwrap();
        server
    });
    let _server = server.await.unwrap();
    store
        .save(&shared, checkpoint("after the restarts"))
        .await
        .unwrap();
    done.store(1, Ordering::Relaxed);
    let mut acknowledged = vec!["after the restarts".to_owned()];
    for writer in saving {
        acknowledged.extend(writer.await.unwrap());
    }
    assert!(acknowledged.len() > 40);
    assert_stored(&*store, &shared, &acknowledged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_at_any_byte_of_a_save_loses_nothing() {
    let server = start();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let store = connect(&through(&proxy)).await;
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("first")).await.unwrap();
    let mut acknowledged = vec!["first".to_owned()];
    for bytes in (0..1_200).step_by(40) {
        let body = format!("cut after {bytes} bytes");
        proxy.set(NetworkFault::CutAfter(bytes));
        // New connections pass, so that the second attempt succeeds.
        let heal = async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            proxy.set(NetworkFault::None);
        };
        let (saved, ()) = tokio::join!(store.save(&shared, checkpoint(&body)), heal);
        saved.unwrap();
        acknowledged.push(body);
    }
    assert_stored(&store, &shared, &acknowledged).await;
    assert_eq!(bodies(&store, &shared).await.len(), acknowledged.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_repeated_and_stored_once() {
    let server = start();
    let proxy = Arc::new(FaultProxy::start(server.address()).unwrap());
    let store = connect(&through(&proxy)).await;
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("first")).await.unwrap();
    for (kind, attempts) in [(TransactionKind::Write, 2), (TransactionKind::WriteOnce, 1)] {
        let count = Arc::new(AtomicUsize::new(0));
        let (proxy, counted, place) = (proxy.clone(), count.clone(), shared.clone());
        let body = format!("{kind:?}");
        let saved = store.session.write(kind, move |tx| {
            let (proxy, place, item) = (proxy.clone(), place.clone(), checkpoint(&body));
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                let place = partitions::lock(tx, &place).await?;
                let (_, is_new, _) = items::store(tx, place, item).await?;
                if is_first {
                    // The server gets the commit, and its answer is lost.
                    proxy.set(NetworkFault::LoseResponses);
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(50));
                        proxy.set(NetworkFault::None);
                    });
                }
                Ok(is_new)
            })
        });
        let saved = saved.await;
        assert_eq!(count.load(Ordering::Relaxed), attempts);
        match kind {
            TransactionKind::Write => assert!(!saved.unwrap(), "the first commit succeeded"),
            _ => assert!(
                matches!(saved, Err(MemoryStoreError::TryAgain(_))),
                "{saved:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(
        bodies(&store, &shared).await,
        ["first", "Write", "WriteOnce"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_is_an_error_that_says_try_again() {
    let server = start();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let store = connect(&through(&proxy)).await;
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("one")).await.unwrap();
    proxy.set(NetworkFault::Reset);
    let error = store.save(&shared, checkpoint("two")).await.unwrap_err();
    assert!(matches!(error, MemoryStoreError::TryAgain(_)), "{error:?}");
    assert!(error.caller_message().contains("try again"));
    let error = store.find_operation(&ada(), "op_0").await.unwrap_err();
    assert!(matches!(error, MemoryStoreError::TryAgain(_)), "{error:?}");
    proxy.set(NetworkFault::None);
    store.save(&shared, checkpoint("two")).await.unwrap();
    assert_eq!(bodies(&store, &shared).await, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_respond_is_given_up() {
    let server = start();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let options = PostgresOptions::from_url(&through(&proxy)).unwrap();
    let options = options.statement_timeout(Duration::from_millis(200));
    let store = PostgresMemoryStore::connect(options).await.unwrap();
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("one")).await.unwrap();
    proxy.set(NetworkFault::Hold);
    let started = Instant::now();
    let error = store.save(&shared, checkpoint("two")).await.unwrap_err();
    assert!(matches!(error, MemoryStoreError::TimedOut(_)), "{error:?}");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    proxy.set(NetworkFault::None);
    store.save(&shared, checkpoint("two")).await.unwrap();
    assert_eq!(bodies(&store, &shared).await, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_an_error_that_says_try_again() {
    let server = start();
    let options = PostgresOptions::from_url(&server.url()).unwrap();
    let options = options
        .max_connections(1)
        .pool_wait(Duration::from_millis(100));
    let store = PostgresMemoryStore::connect(options).await.unwrap();
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("one")).await.unwrap();
    let pool = store.session.connections.pool.clone();
    let connection = store
        .session
        .runtime
        .handle()
        .spawn(async move { pool.get().await });
    let connection = connection.await.unwrap().unwrap();
    let error = store.save(&shared, checkpoint("two")).await.unwrap_err();
    assert!(matches!(error, MemoryStoreError::TryAgain(_)), "{error:?}");
    drop(connection);
    store.save(&shared, checkpoint("two")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_saves_of_several_processes_merge() {
    let server = start();
    let stores = [
        Arc::new(connect(&server.url()).await),
        Arc::new(connect(&server.url()).await),
    ];
    for round in 0..5 {
        // A new owner, so that the partition is created by all of them, too.
        let shared = Partition::shared(&Owner::for_user(&format!("user {round}")));
        let saves: Vec<_> = (0..8)
            .map(|number| {
                let (store, shared) = (stores[number % 2].clone(), shared.clone());
                let item = NewItem::checkpoint("done").tags([format!("tag{number}")]);
                let item = PreparedItem::new(item, 0, TIME);
                tokio::spawn(async move { store.save(&shared, item).await })
            })
            .collect();
        for save in saves {
            save.await.unwrap().unwrap();
        }
        let items = stores[0].list(&shared, ItemKind::Checkpoint, None, 9);
        let items = items.await.unwrap();
        assert_eq!((items.len(), items[0].tags.len()), (1, 8), "{items:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_read_leaves_its_connection_usable() {
    let server = start();
    let options = PostgresOptions::from_url(&server.url()).unwrap();
    let store = PostgresMemoryStore::connect(options.max_connections(1))
        .await
        .unwrap();
    let slow = store
        .session
        .read(|tx| Box::pin(async move { Ok(tx.batch_execute("SELECT pg_sleep(20)").await?) }));
    let dropped = tokio::time::timeout(Duration::from_millis(200), slow).await;
    assert!(dropped.is_err());
    let started = Instant::now();
    assert!(store.versions(&ada()).await.unwrap().is_empty());
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
    let mut left = String::new();
    for _ in 0..100 {
        let sleeping = "SELECT count(*) FROM pg_stat_activity \
                        WHERE state = 'active' AND query LIKE '%pg_sleep(20)' AND pid <> pg_backend_pid()";
        left = server.execute(sleeping).unwrap();
        if left == "0" {
            break;
        }
    }
    assert_eq!(left, "0", "the statement of the dropped read still runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_one_snapshot() {
    let server = start();
    let store = Arc::new(connect(&server.url()).await);
    let shared = Partition::shared(&ada());
    let mut entries = (0..500).map(|number| {
        Ok(super::super::super::ImportEntry::Item {
            item: Box::new(checkpoint(format!("number {number}"))),
            id: None,
        })
    });
    store.import(&shared, &mut entries).await.unwrap();
    let mut exported = 0;
    let mut sink = |entry| {
        if exported == 0 {
            let all = ItemFilter::Before {
                kind: None,
                time: i64::MAX,
            };
            let removed = block_on(store.remove(&shared, &all)).unwrap();
            assert_eq!(removed.items, 500);
        }
        exported += usize::from(matches!(entry, ExportEntry::Item(_)));
        Ok::<_, ContextError>(())
    };
    store.export(&shared, &mut sink).await.unwrap();
    assert_eq!(exported, 500);
    assert_eq!(store.used_bytes(&ada(), 0).await.unwrap(), 0);
}
