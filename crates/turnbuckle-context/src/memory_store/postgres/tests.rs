//! Tests with a real server.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod connection;
mod faults;
mod same_as_sqlite;
mod transfers;

use turnbuckle_test_bed::PostgresServer;

use super::*;
use crate::{
    DataDir,
    memory::NewItem,
    memory_store::{SqliteMemoryStore, conformance},
};

/// The time of saving of all items.
const TIME: i64 = 1_700_000_000_000;

fn start() -> PostgresServer {
    PostgresServer::start().unwrap()
}

/// Connects to a server, or to a proxy in front of it.
async fn connect(url: &str) -> PostgresMemoryStore {
    let options = PostgresOptions::from_url(url).unwrap();
    PostgresMemoryStore::connect(options).await.unwrap()
}

fn ada() -> Owner {
    Owner::for_user("ada")
}

fn checkpoint(body: impl Into<String>) -> PreparedItem {
    PreparedItem::new(NewItem::checkpoint(body), 0, TIME)
}

/// Returns the bodies of all checkpoints of a partition, oldest first.
async fn bodies(store: &dyn MemoryStore, partition: &Partition) -> Vec<String> {
    let listed = store.list(partition, ItemKind::Checkpoint, None, 100_000);
    let mut bodies: Vec<_> = listed
        .await
        .unwrap()
        .into_iter()
        .map(|item| item.body)
        .collect();
    bodies.reverse();
    bodies
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_passes() {
    let server = start();
    let store = Arc::new(connect(&server.url()).await);
    conformance::memory_store(async || {
        server
            .execute("TRUNCATE turnbuckle.partition CASCADE")
            .unwrap();
        let store: Arc<dyn MemoryStore> = store.clone();
        store
    })
    .await;
}

#[tokio::test]
async fn any_thread_can_wait_for_a_result() {
    let server = start();
    let store = connect(&server.url()).await;
    let shared = Partition::shared(&ada());
    // On the only thread of this runtime, and on a thread without a runtime.
    block_on(store.save(&shared, checkpoint("one"))).unwrap();
    let here = std::thread::scope(|scope| {
        let save = || block_on(store.save(&shared, checkpoint("two")));
        scope.spawn(save).join().unwrap()
    });
    assert!(here.unwrap().is_new);
    assert_eq!(bodies(&store, &shared).await, ["one", "two"]);
}
