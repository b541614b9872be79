//! Call streams on an event store that fails, is slow, or loses its replies.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::sleep};
use turnbuckle_server::{Context, Server, Tool, http::Http};
use turnbuckle_store::{
    BoxFuture, EventBatch, EventId, EventReplay, EventStore, InstanceId, SessionId, Store,
    StoreError, StreamId,
};

use crate::http::test_client::{Empty, HttpTestClient, Stream, server};

/// What the store does with the next appends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum EventFault {
    #[default]
    None,
    /// Fails without storing anything.
    Unavailable,
    /// Stores the events and reports a failure.
    LostReply,
    /// Takes this long.
    Slow(Duration),
}

/// The event log of a memory store, with faults.
pub(crate) struct FaultyEvents {
    inner: Arc<dyn EventStore>,
    fault: Mutex<EventFault>,
    appends: AtomicUsize,
    replays: AtomicUsize,
}

impl FaultyEvents {
    /// Puts the event log of a store into one with faults.
    pub(crate) fn wrap(store: &mut Store) -> Arc<Self> {
        let faulty = Arc::new(Self {
            inner: store.events.clone(),
            fault: Mutex::default(),
            appends: AtomicUsize::new(0),
            replays: AtomicUsize::new(0),
        });
        store.events = faulty.clone();
        faulty
    }

    pub(crate) fn set(&self, fault: EventFault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }
}

fn unavailable() -> StoreError {
    StoreError::unavailable("the store is down")
}

impl EventStore for FaultyEvents {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        batch: EventBatch<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.appends.fetch_add(1, Ordering::SeqCst);
            let fault = *self.fault.lock().unwrap();
            match fault {
                EventFault::Unavailable => return Err(unavailable()),
                EventFault::Slow(delay) => sleep(delay).await,
                EventFault::None | EventFault::LostReply => {}
            }
            self.inner.append(session, stream, batch).await?;
            if fault == EventFault::LostReply {
                return Err(unavailable());
            }
            Ok(())
        })
    }

    fn replay_after<'a>(
        &'a self,
        session: &'a SessionId,
        last: &'a EventId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<EventReplay>, StoreError>> {
        self.replays.fetch_add(1, Ordering::SeqCst);
        self.inner.replay_after(session, last, limit)
    }

    fn close_orphan<'a>(
        &'a self,
        session: &'a SessionId,
        stream: &'a StreamId,
        dead: &'a InstanceId,
        after: u64,
        events: &'a [Bytes],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner
            .close_orphan(session, stream, dead, after, events)
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove_session(session)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.sweep()
    }
}

/// A server with a tool `work` that reports progress once per permit, five times, and then returns with the sixth.
fn stepwise() -> (Server, Arc<Semaphore>, Arc<FaultyEvents>) {
    let mut store = Store::memory();
    let events = FaultyEvents::wrap(&mut store);
    let steps = Arc::new(Semaphore::new(0));
    let permits = steps.clone();
    let work = Tool::new("work", move |_: Empty, cx: Context| {
        let permits = permits.clone();
        async move {
            for step in 1..=5 {
                permits.acquire().await.unwrap().forget();
                cx.progress(step, 5).await;
            }
            permits.acquire().await.unwrap().forget();
            Ok("done".to_owned())
        }
    });
    (server().store(store).tool(work), steps, events)
}

/// The steps that messages report, with 6 for the response.
fn steps_of(messages: &[Value]) -> Vec<u64> {
    let step = |message: &Value| match message["params"]["progress"].as_f64() {
        Some(step) => step as u64,
        None => {
            assert_eq!(message["result"]["content"][0]["text"], "done");
            6
        }
    };
    messages.iter().map(step).collect()
}

/// Reads the next message, and updates the id of the last event.
async fn next(stream: &mut Stream, last: &mut String) -> Value {
    let event = stream.event().await.expect("another event");
    *last = event.last_event_id;
    serde_json::from_str(&event.data).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finishes_at_once_is_one_append() {
    let mut store = Store::memory();
    let events = FaultyEvents::wrap(&mut store);
    let steps = Tool::new("steps", async |_: Empty, cx: Context| {
        for step in 1..=5 {
            cx.progress(step, 5).await;
        }
        Ok("done".to_owned())
    });
    let caller = HttpTestClient::new(server().store(store).tool(steps));
    for revision in ["2025-06-18", "2025-11-25"] {
        let caller = caller.clone().in_session(revision).await;
        let before = events.appends();

        let stream = caller.tool(1, "steps", json!({})).await.stream();
        let received = match revision {
            "2025-11-25" => stream.messages_after_prime().await,
            _ => stream.messages().await,
        };

        assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6]);
        assert_eq!(events.appends() - before, 1, "{revision}");
    }
    assert_eq!(events.replays.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_stream_is_not_read_back_from_the_log() {
    let (server, steps, events) = stepwise();
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    steps.add_permits(2);

    let mut stream = caller.tool(1, "work", json!({})).await.stream();
    stream.prime().await;
    stream.event().await.unwrap();
    steps.add_permits(4);
    let rest = stream.messages().await;

    assert_eq!(steps_of(&rest), [2, 3, 4, 5, 6]);
    assert_eq!(events.replays.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connected_client_gets_everything_once_whatever_the_store_does() {
    let faults = [
        EventFault::Unavailable,
        EventFault::LostReply,
        EventFault::Slow(Duration::from_millis(500)),
    ];
    for fault in faults {
        let (server, steps, events) = stepwise();
        let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
        events.set(fault);
        steps.add_permits(1);
        let mut stream = caller.tool(1, "work", json!({})).await.stream();
        let start = stream.prime().await;
        let mut last = start.clone();
        let mut received = vec![next(&mut stream, &mut last).await];
        for step in 2..=6 {
            steps.add_permits(1);
            if step == 4 {
                events.set(EventFault::None);
                sleep(Duration::from_secs(10)).await;
            }
            if step == 5 {
                events.set(fault);
            }
            received.push(next(&mut stream, &mut last).await);
        }
        assert!(stream.event().await.is_none(), "{fault:?}");
        assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6], "{fault:?}");

        // Everything is in the log once the store has recovered.
        events.set(EventFault::None);
        sleep(Duration::from_secs(10)).await;
        let again = caller.get(Some(&start)).await.stream().messages().await;
        assert_eq!(again, received, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_that_the_store_did_not_take_can_be_resumed_later() {
    for fault in [EventFault::Unavailable, EventFault::LostReply] {
        let mut store = Store::memory();
        let events = FaultyEvents::wrap(&mut store);
        let steps = Tool::new("steps", async |_: Empty, cx: Context| {
            for step in 1..=5 {
                cx.progress(step, 5).await;
            }
            Ok("done".to_owned())
        });
        let caller = HttpTestClient::new(server().store(store).tool(steps));
        let caller = caller.in_session("2025-11-25").await;
        events.set(fault);

        let mut stream = caller.tool(1, "steps", json!({})).await.stream();
        let start = stream.prime().await;
        let received = stream.messages().await;
        assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6], "{fault:?}");
        sleep(Duration::from_secs(20)).await;
        events.set(EventFault::None);
        sleep(Duration::from_secs(5)).await;

        let again = caller.get(Some(&start)).await.stream().messages().await;
        assert_eq!(again, received, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_survives_a_lost_connection_and_an_unavailable_store() {
    for fault in [EventFault::Unavailable, EventFault::LostReply] {
        let (server, steps, events) = stepwise();
        let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
        steps.add_permits(1);
        let mut stream = caller.tool(1, "work", json!({})).await.stream();
        let mut last = stream.prime().await;
        let mut received = vec![next(&mut stream, &mut last).await];
        events.set(fault);
        steps.add_permits(1);
        received.push(next(&mut stream, &mut last).await);

        // The rest is sent while the client is away, and not stored at first.
        drop(stream);
        steps.add_permits(4);
        sleep(Duration::from_secs(30)).await;
        let mut waiting = caller.get(Some(&last)).await.stream();
        events.set(EventFault::None);
        loop {
            let event = waiting.event().await;
            let Some(event) = event else { break };
            received.push(serde_json::from_str(&event.data).unwrap());
        }

        assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_during_a_slow_append_is_the_next_batch() {
    let mut store = Store::memory();
    let events = FaultyEvents::wrap(&mut store);
    let tool = Tool::new("work", async |_: Empty, cx: Context| {
        for step in 1..=5 {
            cx.progress(step, 5).await;
            sleep(Duration::from_millis(100)).await;
        }
        Ok("done".to_owned())
    });
    let caller = HttpTestClient::new(server().store(store).tool(tool));
    let caller = caller.in_session("2025-11-25").await;
    events.set(EventFault::Slow(Duration::from_secs(2)));

    let stream = caller.tool(1, "work", json!({})).await.stream();
    let received = stream.messages_after_prime().await;

    assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6]);
    assert_eq!(events.appends(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_store_that_does_not_return_keeps_no_call_alive() {
    let (server, steps, events) = stepwise();
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    steps.add_permits(1);
    let mut stream = caller.tool(1, "work", json!({})).await.stream();
    stream.prime().await;
    events.set(EventFault::Unavailable);
    steps.add_permits(5);
    let received = stream.messages().await;
    assert_eq!(steps_of(&received), [1, 2, 3, 4, 5, 6]);

    sleep(Duration::from_secs(120)).await;
    let before = events.appends();
    sleep(Duration::from_secs(120)).await;

    assert_eq!(events.appends(), before);
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_gets_what_the_store_did_not_take() {
    let mut store = Store::memory();
    let events = FaultyEvents::wrap(&mut store);
    let tool = Tool::new("work", async |_: Empty, cx: Context| {
        for step in 0..80 {
            if step % 40 == 0 {
                sleep(Duration::from_millis(10)).await;
            }
            cx.progress(step, 80).await;
        }
        Ok("done".to_owned())
    });
    let caller = HttpTestClient::new(server().store(store).tool(tool));
    let caller = caller.in_session("2025-11-25").await;
    events.set(EventFault::Unavailable);

    let stream = caller.tool(1, "work", json!({})).await.stream();
    sleep(Duration::from_secs(10)).await;

    assert_eq!(stream.messages_after_prime().await.len(), 81);
}

#[tokio::test(start_paused = true)]
async fn a_finished_call_counts_as_in_flight_until_the_store_takes_its_events() {
    let mut store = Store::memory();
    let events = FaultyEvents::wrap(&mut store);
    let steps = Tool::new("steps", async |_: Empty, cx: Context| {
        cx.progress(1, 1).await;
        Ok("done".to_owned())
    });
    let http = Http::new(server().store(store).tool(steps)).max_in_flight(10);
    let caller = HttpTestClient::with_options(http);
    let caller = caller.in_session("2025-11-25").await;
    let mut statuses = Vec::new();

    events.set(EventFault::Unavailable);
    for id in 0..20 {
        let response = caller.tool(id, "steps", json!({})).await;
        statuses.push(response.status().as_u16());
    }

    assert!(statuses.contains(&503), "{statuses:?}");
    events.set(EventFault::None);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(caller.tool(1, "steps", json!({})).await.status(), 200);
}
