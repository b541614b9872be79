//! Connecting, and the errors that tell why it is not possible.

use std::time::Duration;

use turnbuckle_store_redis::{RedisStore, RedisStoreError, RedisStoreSettings};
use turnbuckle_test_bed::RedisServer;

use crate::test_store::{KEY, connect, settings};

async fn error_of(settings: RedisStoreSettings) -> RedisStoreError {
    RedisStore::connect_with(settings).await.unwrap_err()
}

/// Returns everything that a log could show of an error.
fn shown(error: &RedisStoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(" {error} {error:?}");
        source = error.source();
    }
    text
}

#[tokio::test]
async fn an_error_of_connecting_says_what_is_wrong_and_not_the_password() {
    let redis = RedisServer::start_with(&["--requirepass", "hunter2"]).unwrap();
    let address = redis.address();

    let wrong = error_of(settings(&format!("redis://:hunter3@{address}"))).await;
    let missing = error_of(settings(&redis.url())).await;
    let unreachable = settings("redis://:hunter3@127.0.0.1:1");
    let unreachable = error_of(unreachable.connection_timeout(Duration::from_secs(2))).await;

    assert!(
        matches!(wrong, RedisStoreError::Unauthorized { .. }),
        "{wrong:?}"
    );
    assert!(
        matches!(missing, RedisStoreError::Unauthorized { .. }),
        "{missing:?}"
    );
    assert!(matches!(unreachable, RedisStoreError::Unreachable { .. }));
    assert!(unreachable.to_string().contains("127.0.0.1:1"));
    for error in [wrong, missing, unreachable] {
        assert!(!shown(&error).contains("hunter"), "{}", shown(&error));
    }
    let right = RedisStore::connect(&format!("redis://:hunter2@{address}"), [KEY]).await;
    assert!(right.is_ok());
}

#[tokio::test]
async fn a_user_with_access_to_the_prefix_is_enough() {
    let redis = RedisServer::start().unwrap();
    let rule = [
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">secret",
        "~tb:*",
        "+@all",
        "-@dangerous",
    ];
    redis.command(&rule).unwrap();

    let store = connect(&format!("redis://app:secret@{}", redis.address())).await;

    let states = store.request_states();
    let id = states
        .put("state".into(), Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(states.get(&id).await.unwrap().unwrap(), "state");
}

#[tokio::test]
async fn instances_with_other_state_keys_are_refused() {
    let redis = RedisServer::start().unwrap();
    let with_keys = async |keys: &[&str]| RedisStore::connect(&redis.url(), keys).await;
    with_keys(&["the first state key"]).await.unwrap();

    let other = with_keys(&["another state key"]).await;
    let rotated = with_keys(&["another state key", "the first state key"]).await;
    let later = with_keys(&["another state key"]).await;
    let former = with_keys(&["the first state key"]).await;

    assert!(matches!(other, Err(RedisStoreError::WrongStateKeys { .. })));
    assert!(rotated.is_ok());
    assert!(later.is_ok(), "the former key was replaced");
    assert!(matches!(
        former,
        Err(RedisStoreError::WrongStateKeys { .. })
    ));
}

#[tokio::test]
async fn an_eviction_policy_is_reported() {
    let evicting = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]).unwrap();
    let redis = RedisServer::start().unwrap();

    assert_eq!(
        connect(&evicting.url()).await.eviction_policy(),
        Some("allkeys-lru")
    );
    assert_eq!(connect(&redis.url()).await.eviction_policy(), None);
}

#[tokio::test]
async fn two_prefixes_share_nothing() {
    let redis = RedisServer::start().unwrap();
    let with_prefix = async |prefix: &str| {
        let settings = settings(&redis.url()).prefix(prefix).unwrap();
        RedisStore::connect_with(settings).await.unwrap()
    };
    let (one, two) = (with_prefix("one").await, with_prefix("two").await);

    let ttl = Duration::from_secs(60);
    let id = one.request_states().put("state".into(), ttl).await.unwrap();

    assert_eq!(two.request_states().get(&id).await.unwrap(), None);
    let keys = redis.command(&["KEYS", "*"]).unwrap();
    assert!(
        keys.lines()
            .all(|key| key.starts_with("one:") || key.starts_with("two:")),
        "{keys}"
    );
}

#[tokio::test]
async fn values_in_redis_cannot_be_read_or_exchanged() {
    let redis = RedisServer::start().unwrap();
    let store = connect(&redis.url()).await;
    let (states, ttl) = (store.request_states(), Duration::from_secs(60));
    let one = states.put("plain text".into(), ttl).await.unwrap();
    let two = states.put("other text".into(), ttl).await.unwrap();
    let key = |id| format!("tb:{{j:{id}}}");

    let stored = redis.command(&["GET", &key(&one)]).unwrap();
    assert!(!stored.contains("plain"));
    redis
        .command(&["COPY", &key(&one), &key(&two), "REPLACE"])
        .unwrap();

    assert!(states.get(&two).await.is_err());
    assert_eq!(states.get(&one).await.unwrap().unwrap(), "plain text");
}
