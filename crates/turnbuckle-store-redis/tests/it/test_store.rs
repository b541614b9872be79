//! Stores on servers that the tests start.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use turnbuckle_store::{Store, StoreLimits};
use turnbuckle_store_redis::{RedisStore, RedisStoreSettings};

pub(crate) const KEY: &str = "a state key of the tests";

pub(crate) fn settings(url: &str) -> RedisStoreSettings {
    let settings = RedisStoreSettings::new(url, [KEY]).unwrap();
    // A busy machine may need more than a second, and these tests are not about time.
    settings
        .response_timeout(Duration::from_secs(20))
        .connection_timeout(Duration::from_secs(20))
}

pub(crate) async fn connect(url: &str) -> RedisStore {
    RedisStore::connect_with(settings(url)).await.unwrap()
}

/// Returns a function that creates empty stores on one server.
pub(crate) fn empty_stores(url: String) -> impl AsyncFn(StoreLimits) -> Store {
    let created = AtomicU32::new(0);
    async move |limits| {
        let number = created.fetch_add(1, Ordering::Relaxed);
        let settings = settings(&url).limits(limits).prefix(&format!("t{number}"));
        let redis = RedisStore::connect_with(settings.unwrap()).await.unwrap();
        redis.into_store()
    }
}
