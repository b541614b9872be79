use turnbuckle_store::{Limits, Store, suite};

async fn memory(limits: Limits) -> Store {
    Store::memory_with(limits)
}

#[tokio::test(start_paused = true)]
async fn sessions() {
    suite::sessions(memory).await;
}

#[tokio::test(start_paused = true)]
async fn events() {
    suite::events(memory).await;
}

#[tokio::test(start_paused = true)]
async fn bus() {
    suite::bus(memory).await;
}

#[tokio::test(start_paused = true)]
async fn journals() {
    suite::journals(memory).await;
}

#[tokio::test(start_paused = true)]
async fn tasks() {
    suite::tasks(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races() {
    suite::races(memory).await;
}
