//! Change notifications: from the bus to the GET streams of all sessions.
//!
//! There is one task per endpoint, however many sessions have streams. It starts with the first stream and ends with
//! the last one, or with the endpoint.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    task::{JoinHandle, consume_budget},
    time::{Instant, sleep_until},
};
use turnbuckle_store::{BusSubscription, SessionId, SessionRecord, SubscriberLagged};

use crate::{
    catalog::subscriptions::EncodedChange,
    http::{
        endpoint::Endpoint,
        session::{ActiveSession, ActiveSessionGuard},
        stream::{GetStreams, StreamChannel, append, publish},
    },
    lifecycle::{ChannelFuture, GeneralChannel, runtime::SessionRuntime, session as rules},
    sync::lock,
};

/// Interval of checking for expired streams.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Number of sessions that are notified concurrently, where each needs its own lookup.
const MAX_CONCURRENT_SESSIONS: usize = 32;

/// Number of streams per batch when one event is appended to many of them.
const MAX_STORE_BATCH: usize = 256;

/// The fan-out task of an endpoint, while it runs.
#[derive(Default)]
pub(super) struct ChangeFanout {
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the fan-out task if it is not running, so that changes from now on reach the GET streams.
pub(super) fn start(endpoint: &Arc<Endpoint>) {
    let mut task = lock(&endpoint.change_fanout.task);
    if task.as_ref().is_none_or(JoinHandle::is_finished) {
        let changes = endpoint.server.store_ref().bus.subscribe();
        *task = Some(tokio::spawn(run(endpoint.clone(), changes)));
    }
}

/// Ends a stream.
pub(super) async fn finish(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
    channel: &StreamChannel,
) {
    channel.finish();
    session.remove_channel(channel.stream);
    let events = &endpoint.server.store_ref().events;
    if let Err(error) = events.finish_stream(session_id, &channel.stream).await {
        tracing::warn!(%error, "cannot mark a stream as complete");
    }
}

async fn run(endpoint: Arc<Endpoint>, mut changes: BusSubscription) {
    let mut next_idle_check = Instant::now() + IDLE_CHECK_INTERVAL;
    loop {
        tokio::select! {
            biased;
            () = endpoint.closed() => break,
            change = changes.next() => {
                let subscribers = endpoint.active_sessions.subscribers();
                let change = change.map(|(_, change)| EncodedChange::new(change));
                notify_all(&endpoint, &subscribers, &change).await;
            }
            () = sleep_until(next_idle_check) => {
                next_idle_check = Instant::now() + IDLE_CHECK_INTERVAL;
                end_streams(&endpoint, |streams| streams.expire(Instant::now())).await;
                if stop_if_unused(&endpoint) {
                    return;
                }
            }
        }
    }
    while !stop_if_unused(&endpoint) {
        end_streams(&endpoint, GetStreams::take_all).await;
    }
}

/// Clears the task and returns `true` if no stream is left. The next stream then starts a new task.
fn stop_if_unused(endpoint: &Endpoint) -> bool {
    let mut task = lock(&endpoint.change_fanout.task);
    let is_unused = endpoint.active_sessions.has_no_subscribers();
    if is_unused {
        *task = None;
    }
    is_unused
}

/// Ends the selected streams of every session.
async fn end_streams(
    endpoint: &Endpoint,
    take_streams: impl Fn(&GetStreams) -> Vec<Arc<StreamChannel>>,
) {
    for ChangeSubscriber {
        session_id,
        session,
        ..
    } in endpoint.active_sessions.subscribers().iter()
    {
        let ended = take_streams(&session.get_streams);
        for channel in &ended {
            finish(endpoint, session_id, session, channel).await;
        }
        if !ended.is_empty() || session.is_closed() || session.get_streams.is_empty() {
            endpoint.active_sessions.remove_if_idle(session_id, session);
        }
    }
}

/// Notifies every session with a GET stream of a change.
async fn notify_all(
    endpoint: &Endpoint,
    subscribers: &[ChangeSubscriber],
    change: &Result<EncodedChange, SubscriberLagged>,
) {
    let remaining = match change {
        Ok(announcement) if announcement.is_list_change() => {
            notify_direct(endpoint, subscribers, announcement).await
        }
        Ok(announcement) => {
            let may_be_notified =
                |subscriber: &&ChangeSubscriber| announcement.may_be_for(subscriber.session_id);
            subscribers.iter().filter(may_be_notified).collect()
        }
        Err(SubscriberLagged { .. }) => subscribers.iter().collect(),
    };
    let next = AtomicUsize::new(0);
    // Concurrently, so that a slow store lookup delays few other sessions.
    let mut workers: Vec<_> =
        std::iter::repeat_with(|| run_notify_worker(endpoint, &remaining, &next, change))
            .map(Box::pin)
            .take(remaining.len().min(MAX_CONCURRENT_SESSIONS))
            .collect();
    poll_fn(|cx| {
        workers.retain_mut(|worker| worker.as_mut().poll(cx).is_pending());
        if workers.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Sends a list change directly where the target stream is known. Returns the other subscribers.
///
/// This covers most changes and most sessions, and touches only their streams.
async fn notify_direct<'a>(
    endpoint: &Endpoint,
    subscribers: &'a [ChangeSubscriber],
    announcement: &EncodedChange,
) -> Vec<&'a ChangeSubscriber> {
    let (events, message) = (&endpoint.server.store_ref().events, &announcement.message);
    let mut others = Vec::new();
    for batch in subscribers.chunks(MAX_STORE_BATCH) {
        let mut direct = Vec::with_capacity(batch.len());
        for subscriber in batch {
            match &subscriber.newest {
                Some(channel) if channel.receives_list_changes() => {
                    direct.push((subscriber, channel));
                }
                _ => others.push(subscriber),
            }
        }
        if direct.is_empty() {
            continue;
        }
        let streams: Vec<_> = direct
            .iter()
            .map(|(subscriber, channel)| (subscriber.session_id, channel.stream))
            .collect();
        let appended = events.append_to_all(&streams, message.clone()).await;
        for ((subscriber, channel), appended) in direct.into_iter().zip(appended) {
            if !publish(channel, appended, message.clone()) {
                others.push(subscriber);
            }
            // Yield to other tasks, such as those that write the streams.
            consume_budget().await;
        }
    }
    others
}

/// Notifies the next subscriber until none is left.
async fn run_notify_worker(
    endpoint: &Endpoint,
    subscribers: &[&ChangeSubscriber],
    next: &AtomicUsize,
    change: &Result<EncodedChange, SubscriberLagged>,
) {
    while let Some(subscriber) = subscribers.get(next.fetch_add(1, Ordering::Relaxed)) {
        let (session_id, session) = (&subscriber.session_id, &subscriber.session);
        match change {
            Ok(announcement)
                if announcement.is_list_change() && session.get_streams.receives_list_changes() =>
            {
                send_to_session(endpoint, session_id, session, &announcement.message).await;
            }
            change => notify_session(endpoint, session_id, session, change).await,
        }
        consume_budget().await;
    }
}

/// Notifies a session of a change, if it is subscribed to it.
async fn notify_session(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
    change: &Result<EncodedChange, SubscriberLagged>,
) {
    let server = &endpoint.server;
    let record = match server.store_ref().sessions.load(session_id).await {
        Ok(Some(record)) => record,
        Ok(None) => {
            for channel in session.get_streams.take_all() {
                finish(endpoint, session_id, session, &channel).await;
            }
            endpoint.active_sessions.remove_if_idle(session_id, session);
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot load a session; it misses a change notification");
            return;
        }
    };
    session.get_streams.set_receives_list_changes();
    let missed: Vec<_>;
    let announcements = match change {
        Ok(announcement) => std::slice::from_ref(announcement),
        Err(SubscriberLagged { .. }) => {
            let changes = rules::all_changes(&record).into_iter();
            missed = changes.map(EncodedChange::new).collect();
            &missed
        }
    };
    for announcement in announcements {
        let message =
            rules::notification_for(server, &record, *session_id, &session.runtime, announcement);
        if let Some(message) = message {
            send_to_session(endpoint, session_id, session, &message).await;
        }
    }
}

/// Sends a message on the current stream of a session. A stream that no longer exists in the store is ended.
async fn send_to_session(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
    message: &Bytes,
) {
    let store = endpoint.server.store_ref();
    while let Some(channel) = session.get_streams.current() {
        if append(store, session_id, &channel, message.clone()).await {
            return;
        }
        session.get_streams.remove(&channel);
        finish(endpoint, session_id, session, &channel).await;
        endpoint.active_sessions.remove_if_idle(session_id, session);
    }
    endpoint.active_sessions.remove_if_idle(session_id, session);
}

/// The general channel of a session: its GET streams.
impl GeneralChannel for ActiveSessionGuard {
    fn runtime(&self) -> &SessionRuntime {
        &self.session.runtime
    }

    fn record(&self) -> ChannelFuture<'_, Option<Arc<SessionRecord>>> {
        let sessions = &self.endpoint.server.store_ref().sessions;
        Box::pin(async { sessions.load(&self.session_id).await.ok().flatten() })
    }

    fn send(&self, message: Bytes) -> ChannelFuture<'_, ()> {
        Box::pin(async move {
            send_to_session(&self.endpoint, &self.session_id, &self.session, &message).await;
        })
    }
}

/// The sessions that have GET streams.
#[derive(Default)]
pub(super) struct ChangeSubscribers {
    table: Mutex<SubscriberTable>,
}

/// The subscribers and a cached snapshot of them.
///
/// Ordered by insertion: the data of the sessions is in about that order in memory, and iterating in another order is
/// slower.
#[derive(Default)]
struct SubscriberTable {
    entries: BTreeMap<u64, (SessionId, Arc<ActiveSession>)>,
    next_key: u64,
    /// Created for the first change, and reused until a stream is opened or ends: most changes go to the same streams as the
    /// previous one.
    snapshot: SubscriberSnapshot,
}

type SubscriberSnapshot = Option<Arc<[ChangeSubscriber]>>;

/// A session with its streams, as needed to notify it.
pub(super) struct ChangeSubscriber {
    pub(super) session_id: SessionId,
    pub(super) session: Arc<ActiveSession>,
    /// Its newest stream when the snapshot was taken.
    pub(super) newest: Option<Arc<StreamChannel>>,
}

impl ChangeSubscribers {
    /// Adds a session that opened a stream.
    pub(super) fn stream_added(&self, session_id: SessionId, session: &Arc<ActiveSession>) {
        // A snapshot may be large, so it is dropped after the lock is released.
        let _stale_snapshot = lock(&self.table).stream_added(session_id, session);
    }

    /// Updates a session after some of its streams ended. A closed session or one without streams is removed.
    pub(super) fn streams_removed(&self, session: &ActiveSession) {
        let _stale_snapshot = lock(&self.table).streams_removed(session);
    }

    /// Removes all subscribers.
    pub(super) fn clear(&self) {
        let _stale_snapshot = std::mem::take(&mut *lock(&self.table));
    }

    /// Returns all subscribers in insertion order.
    pub(super) fn snapshot(&self) -> Arc<[ChangeSubscriber]> {
        lock(&self.table).snapshot()
    }

    /// Returns whether the table is empty.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.table).entries.is_empty()
    }
}

impl SubscriberTable {
    fn stream_added(
        &mut self,
        session_id: SessionId,
        session: &Arc<ActiveSession>,
    ) -> SubscriberSnapshot {
        let key = *session.subscriber_key.get_or_init(|| {
            self.next_key += 1;
            self.next_key
        });
        self.entries
            .entry(key)
            .or_insert_with(|| (session_id, session.clone()));
        self.snapshot.take()
    }

    fn streams_removed(&mut self, session: &ActiveSession) -> SubscriberSnapshot {
        let key = session.subscriber_key.get()?;
        // A stream that is being opened concurrently is added afterwards.
        if session.is_closed() || session.get_streams.is_empty() {
            self.entries.remove(key);
        }
        self.snapshot.take()
    }

    fn snapshot(&mut self) -> Arc<[ChangeSubscriber]> {
        let entries = &self.entries;
        self.snapshot
            .get_or_insert_with(|| entries.values().map(ChangeSubscriber::new).collect())
            .clone()
    }
}

impl ChangeSubscriber {
    fn new((session_id, session): &(SessionId, Arc<ActiveSession>)) -> Self {
        Self {
            session_id: *session_id,
            session: session.clone(),
            newest: session.get_streams.newest(),
        }
    }
}

#[cfg(test)]
mod tests;
