//! Change notifications: from the bus to the GET streams of all sessions.
//!
//! There is one task per endpoint, however many sessions have streams. It starts with the first stream and ends with
//! the last one, or with the endpoint.

mod interests;
mod subscribers;

use std::{
    collections::HashSet,
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
    task::{JoinHandle, consume_budget, coop::unconstrained},
    time::{Instant, sleep_until},
};
use turnbuckle_store::{
    BusSubscription, ControlMessage, ControlSubscription, SessionId, SessionRecord,
    SubscriberLagged,
};

pub(super) use self::subscribers::{ChangeSubscriber, ChangeSubscribers};
use crate::{
    catalog::subscriptions::EncodedChange,
    http::{
        endpoint::Endpoint,
        session::{ActiveSession, ActiveSessionGuard},
        stream::{GetStreams, StreamChannel, append, finish_in_log, publish},
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

/// Maximum number of sessions that are read together because their subscriptions changed.
const MAX_CHANGED_SESSIONS: usize = 1_024;

/// The fan-out task of an endpoint, while it runs.
#[derive(Default)]
pub(super) struct ChangeFanout {
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts the fan-out task if it is not running, so that changes from now on reach the GET streams.
pub(super) fn start(endpoint: &Arc<Endpoint>) {
    let mut task = lock(&endpoint.change_fanout.task);
    if task.as_ref().is_none_or(JoinHandle::is_finished) {
        let store = endpoint.server.store_ref();
        let (changes, control) = (store.bus.subscribe(), store.control.subscribe());
        *task = Some(tokio::spawn(run(endpoint.clone(), changes, control)));
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
    finish_in_log(endpoint.server.store_ref(), session_id, channel).await;
}

async fn run(
    endpoint: Arc<Endpoint>,
    mut changes: BusSubscription,
    mut control: ControlSubscription,
) {
    let mut next_idle_check = Instant::now() + IDLE_CHECK_INTERVAL;
    loop {
        tokio::select! {
            biased;
            () = endpoint.closed() => break,
            change = changes.next() => {
                // A session that subscribed before the change is notified of it.
                read_changed_sessions(&endpoint, &mut control, None).await;
                notify(&endpoint, change.map(|(_, change)| EncodedChange::new(change))).await;
            }
            message = control.next() => {
                read_changed_sessions(&endpoint, &mut control, Some(message)).await;
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

/// Handles a control message and those that are ready: reads the sessions with changed subscriptions again.
async fn read_changed_sessions(
    endpoint: &Endpoint,
    control: &mut ControlSubscription,
    first: Option<Result<ControlMessage, SubscriberLagged>>,
) {
    let subscribers = endpoint.active_sessions.subscriber_table();
    let mut changed = HashSet::new();
    let mut next = first;
    loop {
        let message = match next.take() {
            Some(message) => message,
            // The budget of the task would hide messages that are ready.
            None => match unconstrained(poll_fn(|cx| Poll::Ready(control.poll_next(cx)))).await {
                Poll::Ready(message) => message,
                Poll::Pending => break,
            },
        };
        match message {
            Ok(ControlMessage::SubscriptionsChanged { session }) => {
                changed.insert(session);
            }
            Ok(_) => {}
            Err(SubscriberLagged { .. }) => subscribers.forget_interests(),
        }
        if changed.len() > MAX_CHANGED_SESSIONS {
            // Each is read when a change may concern it.
            subscribers.forget_interests();
            return;
        }
    }
    for session_id in changed {
        if let Some(session) = endpoint.active_sessions.find(&session_id)
            && session.subscriber_key.get().is_some()
        {
            read_interests(endpoint, &session_id, &session).await;
        }
    }
}

/// Reads what a session with a GET stream is notified of.
///
/// If the store fails, the session is read again for the next change.
pub(super) async fn read_interests(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
) {
    let subscribers = endpoint.active_sessions.subscriber_table();
    let read = subscribers.begin_read();
    match endpoint.server.store_ref().sessions.load(session_id).await {
        Ok(Some(record)) => subscribers.set_interests(*session_id, session, &record, read),
        // Found to have ended when it is notified, or by the reader of its stream.
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "cannot read the subscriptions of a session");
            subscribers.forget_interests_of(session);
        }
    }
}

/// Notifies the sessions with a GET stream that a change concerns.
async fn notify(endpoint: &Endpoint, change: Result<EncodedChange, SubscriberLagged>) {
    match &change {
        Ok(announcement) if !announcement.is_list_change() => {
            let subscribers = endpoint.active_sessions.subscriber_table();
            let concerned = subscribers.concerned_by(announcement);
            notify_each(endpoint, &concerned.iter().collect::<Vec<_>>(), &change).await;
        }
        _ => notify_all(endpoint, &endpoint.active_sessions.subscribers(), &change).await,
    }
}

/// Notifies every session with a GET stream of a list change, or of everything.
async fn notify_all(
    endpoint: &Endpoint,
    subscribers: &[ChangeSubscriber],
    change: &Result<EncodedChange, SubscriberLagged>,
) {
    let remaining = match change {
        Ok(announcement) => notify_direct(endpoint, subscribers, announcement).await,
        Err(SubscriberLagged { .. }) => subscribers.iter().collect(),
    };
    notify_each(endpoint, &remaining, change).await;
}

/// Notifies sessions that need a lookup each.
async fn notify_each(
    endpoint: &Endpoint,
    remaining: &[&ChangeSubscriber],
    change: &Result<EncodedChange, SubscriberLagged>,
) {
    let next = AtomicUsize::new(0);
    // Concurrently, so that a slow store lookup delays few other sessions.
    let mut workers: Vec<_> =
        std::iter::repeat_with(|| run_notify_worker(endpoint, remaining, &next, change))
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
    let subscribers = endpoint.active_sessions.subscriber_table();
    let read = subscribers.begin_read();
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
    subscribers.set_unknown_interests(*session_id, session, &record, read);
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

#[cfg(test)]
mod tests;
