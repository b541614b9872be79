//! Streams of calls that a client resumes at another instance.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use turnbuckle_server::{Context, Server, Tool};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{
    BoxFuture, EventId, EventReplay, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry,
    InstanceSlot, Store, StoreError,
};

use super::test_registry::TwoInstances;
use crate::http::{
    event_store_faults::{EventFault, FaultyEvents},
    test_client::{Empty, HttpTestClient, HttpTestResponse, Stream},
};

const STEPS: u32 = 20;

/// A server with a tool that reports progress once per permit, and then returns with another one.
fn stepwise(steps: &Arc<Semaphore>) -> Server {
    let steps = steps.clone();
    let work = Tool::new("work", move |_: Empty, cx: Context| {
        let steps = steps.clone();
        async move {
            for step in 1..=STEPS {
                steps.acquire().await.unwrap().forget();
                cx.progress(step, STEPS).await;
            }
            steps.acquire().await.unwrap().forget();
            Ok("done".to_owned())
        }
    });
    Server::new("test", "1.0.0").tool(work)
}

/// Two instances with a session, and a call that runs at the first.
struct RunningCall {
    instances: TwoInstances,
    steps: Arc<Semaphore>,
    /// The id of the last event.
    last: String,
    received: Vec<Value>,
}

impl RunningCall {
    /// Starts the call, reads the first step, and loses the connection.
    async fn start(store: Store, revision: &str) -> Self {
        let steps = Arc::new(Semaphore::new(1));
        let instances = TwoInstances::with_store(store, || stepwise(&steps));
        let instances = instances.in_session(revision).await;
        let mut call = Self {
            instances,
            steps,
            last: String::new(),
            received: Vec::new(),
        };
        let mut stream = call
            .instances
            .first
            .tool(1, "work", json!({}))
            .await
            .stream();
        call.read(&mut stream, 1).await;
        call
    }

    /// Reads messages. Fewer if the stream ends.
    async fn read(&mut self, stream: &mut Stream, count: usize) {
        let until = self.received.len() + count;
        while self.received.len() < until
            && let Some(event) = stream.event().await
        {
            self.last = event.last_event_id;
            if !event.data.is_empty() {
                self.received
                    .push(serde_json::from_str(&event.data).unwrap());
            }
        }
    }

    async fn resume_at(&self, client: &HttpTestClient) -> Stream {
        let response: HttpTestResponse = client.get(Some(&self.last)).await;
        assert_eq!(response.status(), 200);
        response.stream()
    }

    fn assert_complete(&self, context: &str) {
        let (response, progress) = self.received.split_last().unwrap();
        let steps: Vec<_> = progress
            .iter()
            .map(|message| message["params"]["progress"].as_f64().unwrap() as u32)
            .collect();
        assert!(steps.into_iter().eq(1..=STEPS), "{context}");
        assert_eq!(
            response["result"]["content"][0]["text"], "done",
            "{context}"
        );
    }

    /// The steps that were received, and the code of the last message if that is an error.
    fn steps_and_error(&self) -> (usize, Option<i64>) {
        let code = self.received.last().unwrap()["error"]["code"].as_i64();
        (self.received.len() - usize::from(code.is_some()), code)
    }

    fn release_all(&self) {
        self.steps.add_permits(STEPS as usize);
    }
}

fn shared() -> Store {
    Store::memory().shared()
}

#[tokio::test(start_paused = true)]
async fn a_running_call_is_resumed_at_another_instance() {
    req!(
        "http.sse.disconnect-not-cancel",
        "http.resume.last-event-id",
        "http.sse.response-eventually"
    );
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut call = RunningCall::start(shared(), revision).await;
        // Some events are in the log, others are sent while the client reads.
        call.steps.add_permits(3);
        sleep(Duration::from_millis(10)).await;
        let second = call.instances.second.clone();
        let mut stream = call.resume_at(&second).await;
        call.read(&mut stream, 3).await;
        for _ in 0..4 {
            let sent = Instant::now();
            call.steps.add_permits(1);
            call.read(&mut stream, 1).await;
            let delay = sent.elapsed();
            assert!(
                delay < Duration::from_millis(500),
                "{delay:?}: not forwarded"
            );
        }
        call.release_all();
        call.read(&mut stream, usize::from(u16::MAX)).await;

        call.assert_complete(revision);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_is_replayed_at_another_instance() {
    let mut call = RunningCall::start(shared(), "2025-11-25").await;
    call.release_all();
    sleep(Duration::from_secs(1)).await;

    let second = call.instances.second.clone();
    let mut stream = call.resume_at(&second).await;
    call.read(&mut stream, usize::from(u16::MAX)).await;

    call.assert_complete("finished");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_alternates_between_instances_loses_and_repeats_nothing() {
    for pause in [0, 10] {
        let mut call = RunningCall::start(shared(), "2025-11-25").await;
        let clients = [
            call.instances.second.clone(),
            call.instances.first.clone(),
            call.instances.second.clone(),
            call.instances.second.clone(),
            call.instances.first.clone(),
            call.instances.first.clone(),
            call.instances.second.clone(),
        ];
        for client in &clients {
            // One is sent before the client is back, one while it reads, one after it has left.
            call.steps.add_permits(1);
            sleep(Duration::from_millis(pause)).await;
            let mut stream = call.resume_at(client).await;
            call.steps.add_permits(1);
            call.read(&mut stream, 2).await;
            drop(stream);
            sleep(Duration::from_millis(pause)).await;
        }
        call.release_all();
        let second = call.instances.second.clone();
        let mut stream = call.resume_at(&second).await;
        call.read(&mut stream, usize::from(u16::MAX)).await;

        call.assert_complete(&format!("{pause}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_reader_replaces_the_one_at_another_instance() {
    let mut call = RunningCall::start(shared(), "2025-11-25").await;
    let (first, second) = (call.instances.first.clone(), call.instances.second.clone());
    let mut at_second = call.resume_at(&second).await;
    call.steps.add_permits(1);
    call.read(&mut at_second, 1).await;

    let mut at_first = call.resume_at(&first).await;

    assert!(at_second.event().await.is_none(), "it is detached");
    call.release_all();
    call.read(&mut at_first, usize::from(u16::MAX)).await;
    call.assert_complete("at the first");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_instance_that_stopped_ends_with_an_error_and_its_late_writes_are_refused() {
    // Resumed while the writer seems to live, and after its lease has expired.
    for resumed_after in [0, 20] {
        let mut call = RunningCall::start(shared(), "2025-11-25").await;
        call.instances.registry.cut_off();
        sleep(Duration::from_secs(resumed_after)).await;
        let resumed = Instant::now();
        let second = call.instances.second.clone();
        let start = call.last.clone();

        let mut stream = call.resume_at(&second).await;
        call.read(&mut stream, usize::from(u16::MAX)).await;

        assert!(resumed.elapsed() <= Duration::from_secs(20));
        assert_eq!(call.steps_and_error(), (1, Some(-32603)), "{resumed_after}");
        let error = call.received.last().unwrap().clone();
        assert_eq!(error["id"], 1);
        assert_eq!(
            error["error"]["message"],
            "the instance that ran this call stopped"
        );
        // The instance continues after a pause.
        call.instances.registry.reconnect();
        call.release_all();
        sleep(Duration::from_secs(30)).await;
        let again = second.get(Some(&start)).await.stream().messages().await;
        assert_eq!(again, [error], "{resumed_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_with_more_events_than_the_log_of_a_dead_instance_gets_the_error() {
    let mut store = shared();
    let events = FaultyEvents::wrap(&mut store);
    let steps = Arc::new(Semaphore::new(1));
    let instances = TwoInstances::with_store(store, || stepwise(&steps));
    let instances = instances.in_session("2025-11-25").await;
    let mut call = RunningCall {
        instances,
        steps,
        last: String::new(),
        received: Vec::new(),
    };
    let mut stream = call
        .instances
        .first
        .tool(1, "work", json!({}))
        .await
        .stream();
    call.read(&mut stream, 1).await;
    events.set(EventFault::Unavailable);
    call.steps.add_permits(2);
    call.read(&mut stream, 2).await;
    drop(stream);
    call.instances.registry.cut_off();
    sleep(Duration::from_secs(20)).await;
    events.set(EventFault::None);

    let second = call.instances.second.clone();
    let mut stream = call.resume_at(&second).await;
    call.read(&mut stream, usize::from(u16::MAX)).await;

    assert_eq!(call.steps_and_error(), (3, Some(-32603)));
}

/// A registry that loses the messages with events.
struct LossyRegistry {
    inner: Arc<dyn InstanceRegistry>,
    is_lossy: AtomicBool,
}

impl InstanceRegistry for LossyRegistry {
    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>> {
        self.inner.join()
    }

    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.renew(id)
    }

    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.leave(id)
    }

    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.is_alive(id)
    }

    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>> {
        self.inner.take_expired()
    }

    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let is_lost = matches!(message, InstanceMessage::Events { .. });
        if is_lost && self.is_lossy.load(Ordering::Relaxed) {
            return Box::pin(async { Ok(true) });
        }
        self.inner.send(slot, message)
    }

    fn inbox(&self, id: &InstanceId) -> InstanceInbox {
        self.inner.inbox(id)
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_are_not_forwarded_are_read_from_the_log() {
    let mut store = shared();
    let registry = Arc::new(LossyRegistry {
        inner: store.instances.clone(),
        is_lossy: AtomicBool::new(true),
    });
    store.instances = registry.clone();
    let mut call = RunningCall::start(store, "2025-11-25").await;
    let second = call.instances.second.clone();
    let mut stream = call.resume_at(&second).await;
    call.steps.add_permits(3);
    call.read(&mut stream, 3).await;
    registry.is_lossy.store(false, Ordering::Relaxed);
    call.steps.add_permits(1);
    call.read(&mut stream, 1).await;
    registry.is_lossy.store(true, Ordering::Relaxed);
    call.release_all();
    call.read(&mut stream, usize::from(u16::MAX)).await;

    call.assert_complete("lossy");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_stream_is_unknown_at_every_instance() {
    let call = RunningCall::start(shared(), "2025-11-25").await;
    let id: EventId = call.last.parse().unwrap();
    let unknown = [
        format!("{}-1", id.stream.number() + 7),
        format!("{}-0", id.stream),
        format!("{}-{}", id.stream, u64::MAX),
    ];

    for client in [&call.instances.first, &call.instances.second] {
        for id in &unknown {
            let response = client.get(Some(id)).await;
            assert_eq!(response.status_and_code().await, (400, -32600), "{id}");
        }
    }
    let session = call.instances.first.session.as_ref().unwrap();
    let session = session.parse().unwrap();
    let replay: Option<EventReplay> = call
        .instances
        .store
        .events
        .replay_after(&session, &id, 10)
        .await
        .unwrap();
    assert!(!replay.unwrap().finished, "the call goes on");
}
