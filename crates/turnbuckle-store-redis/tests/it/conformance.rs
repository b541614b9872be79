//! The tests that every store must pass.

use turnbuckle_store::conformance;
use turnbuckle_test_bed::RedisServer;

use crate::test_store::empty_stores;

#[tokio::test]
async fn request_states() {
    let redis = RedisServer::start().unwrap();
    conformance::request_states(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn claims() {
    let redis = RedisServer::start().unwrap();
    conformance::claims(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn bus() {
    let redis = RedisServer::start().unwrap();
    conformance::bus(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn control() {
    let redis = RedisServer::start().unwrap();
    conformance::control(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn instances() {
    let redis = RedisServer::start().unwrap();
    conformance::instances(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn sessions() {
    let redis = RedisServer::start().unwrap();
    conformance::sessions(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn events() {
    let redis = RedisServer::start().unwrap();
    conformance::events(empty_stores(redis.url())).await;
}

#[tokio::test]
async fn tasks() {
    let redis = RedisServer::start().unwrap();
    conformance::tasks(empty_stores(redis.url())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrency() {
    let redis = RedisServer::start().unwrap();
    conformance::concurrency(empty_stores(redis.url())).await;
}
