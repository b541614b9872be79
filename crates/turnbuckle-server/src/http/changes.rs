//! Change notifications: from the bus to the GET streams of all sessions.
//!
//! Changes are not stored here: a stream that was not read in time gets them from the log of the bus.
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
    BusSubscription, ControlMessage, ControlSubscription, Position, PositionedChange, ServerChange,
    SessionId, SessionRecord, SubscriberLagged,
};

pub(super) use self::subscribers::{ChangeSubscriber, ChangeSubscribers};
use crate::{
    catalog::subscriptions::EncodedChange,
    http::{
        endpoint::Endpoint,
        session::{ActiveSession, ActiveSessionGuard},
        stream::{ChangeSender, GetStream, GetStreams, begin_turn},
    },
    lifecycle::{ChannelFuture, GeneralChannel, runtime::SessionRuntime, session as rules},
    sync::lock,
};

/// Interval of checking for expired streams.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Number of sessions that are notified concurrently, where each needs its own lookup.
const MAX_CONCURRENT_SESSIONS: usize = 32;

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

/// What sessions are notified of.
enum ChangeNotice {
    /// The change at a position.
    Change(Position, EncodedChange),
    /// Everything, because changes up to a position were missed.
    Everything(Position),
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
                notify(&endpoint, &notice_of(&endpoint, change)).await;
            }
            message = control.next() => {
                read_changed_sessions(&endpoint, &mut control, Some(message)).await;
            }
            () = sleep_until(next_idle_check) => {
                next_idle_check = Instant::now() + IDLE_CHECK_INTERVAL;
                end_streams(&endpoint, |streams| streams.expire(Instant::now()));
                if stop_if_unused(&endpoint) {
                    return;
                }
            }
        }
    }
    while !stop_if_unused(&endpoint) {
        end_streams(&endpoint, GetStreams::take_all);
    }
}

fn notice_of(
    endpoint: &Endpoint,
    change: Result<PositionedChange, SubscriberLagged>,
) -> ChangeNotice {
    match change {
        Ok((position, change)) => ChangeNotice::Change(position, EncodedChange::new(change)),
        // Read before the sessions are notified: what is published from now on is announced afterwards.
        Err(SubscriberLagged { .. }) => {
            ChangeNotice::Everything(endpoint.server.store_ref().bus.position())
        }
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
fn end_streams(endpoint: &Endpoint, take_streams: impl Fn(&GetStreams) -> Vec<Arc<GetStream>>) {
    for ChangeSubscriber {
        session_id,
        session,
        ..
    } in endpoint.active_sessions.subscribers().iter()
    {
        let ended = take_streams(&session.get_streams);
        ended.iter().for_each(|stream| stream.finish());
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
            Ok(
                ControlMessage::SubscriptionsChanged { session }
                | ControlMessage::SessionChanged { session },
            ) => {
                changed.insert(session);
            }
            Ok(_) => {}
            Err(SubscriberLagged { .. }) => forget_records(endpoint),
        }
        if changed.len() > MAX_CHANGED_SESSIONS {
            forget_records(endpoint);
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

/// Forgets what is known of the records of sessions. Each is read when a change may concern it.
fn forget_records(endpoint: &Endpoint) {
    endpoint
        .active_sessions
        .subscriber_table()
        .forget_interests();
    for subscriber in endpoint.active_sessions.subscribers().iter() {
        subscriber.session.get_streams.forget_record();
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
        Ok(Some(record)) => {
            subscribers.set_interests(*session_id, session, &record, read);
            session.get_streams.read_turn(&record, endpoint.sender);
            if session.get_streams.is_empty() {
                endpoint.active_sessions.remove_if_idle(session_id, session);
            }
        }
        // Found to have ended when it is notified, or by the reader of its stream.
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "cannot read the subscriptions of a session");
            subscribers.forget_interests_of(session);
        }
    }
}

/// Notifies the sessions with a GET stream that a change concerns.
async fn notify(endpoint: &Endpoint, notice: &ChangeNotice) {
    match notice {
        ChangeNotice::Change(_, change) if !change.is_list_change() => {
            let subscribers = endpoint.active_sessions.subscriber_table();
            let concerned = subscribers.concerned_by(change);
            notify_each(endpoint, &concerned.iter().collect::<Vec<_>>(), notice).await;
        }
        _ => notify_all(endpoint, &endpoint.active_sessions.subscribers(), notice).await,
    }
}

/// Notifies every session with a GET stream of a list change, or of everything.
async fn notify_all(endpoint: &Endpoint, subscribers: &[ChangeSubscriber], notice: &ChangeNotice) {
    let remaining = match notice {
        ChangeNotice::Change(position, change) => {
            notify_direct(subscribers, *position, &change.message).await
        }
        ChangeNotice::Everything(_) => subscribers.iter().collect(),
    };
    notify_each(endpoint, &remaining, notice).await;
}

/// Notifies sessions that need a lookup each.
async fn notify_each(endpoint: &Endpoint, remaining: &[&ChangeSubscriber], notice: &ChangeNotice) {
    let next = AtomicUsize::new(0);
    // Concurrently, so that a slow store lookup delays few other sessions.
    let mut workers: Vec<_> =
        std::iter::repeat_with(|| run_notify_worker(endpoint, remaining, &next, notice))
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
    subscribers: &'a [ChangeSubscriber],
    position: Position,
    message: &Bytes,
) -> Vec<&'a ChangeSubscriber> {
    let mut others = Vec::new();
    for subscriber in subscribers {
        match &subscriber.newest {
            Some(stream) if stream.receives_list_changes() => {
                stream.send_change(position, message.clone());
                // Yield to other tasks, such as those that write the streams.
                consume_budget().await;
            }
            _ => others.push(subscriber),
        }
    }
    others
}

/// Notifies the next subscriber until none is left.
async fn run_notify_worker(
    endpoint: &Endpoint,
    subscribers: &[&ChangeSubscriber],
    next: &AtomicUsize,
    notice: &ChangeNotice,
) {
    while let Some(subscriber) = subscribers.get(next.fetch_add(1, Ordering::Relaxed)) {
        let (session_id, session) = (&subscriber.session_id, &subscriber.session);
        match notice {
            ChangeNotice::Change(position, change)
                if change.is_list_change() && session.get_streams.receives_list_changes() =>
            {
                send_change(endpoint, session_id, session, *position, &change.message).await;
            }
            _ if session.get_streams.is_turn_elsewhere() => {}
            notice => notify_session(endpoint, session_id, session, notice).await,
        }
        consume_budget().await;
    }
}

/// Notifies a session of a change, if it is subscribed to it.
async fn notify_session(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
    notice: &ChangeNotice,
) {
    let subscribers = endpoint.active_sessions.subscriber_table();
    let read = subscribers.begin_read();
    let sessions = &endpoint.server.store_ref().sessions;
    let record = match sessions.load(session_id).await {
        Ok(Some(record)) => record,
        Ok(None) => {
            let streams = session.get_streams.take_all();
            streams.iter().for_each(|stream| stream.finish());
            endpoint.active_sessions.remove_if_idle(session_id, session);
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot load a session; it misses a change notification");
            return;
        }
    };
    subscribers.set_unknown_interests(*session_id, session, &record, read);
    session.get_streams.read_turn(&record, endpoint.sender);
    if session.get_streams.is_turn_elsewhere() {
        return;
    }
    session.get_streams.set_receives_list_changes();
    let notification = |change: &EncodedChange| {
        let (server, runtime) = (&endpoint.server, &session.runtime);
        rules::notification_for(server, &record, *session_id, runtime, change)
    };
    match notice {
        ChangeNotice::Change(position, change) => {
            let Some(message) = notification(change) else {
                return;
            };
            if matches!(change.change, ServerChange::ElicitationCompleted { .. }) {
                // It is no longer pending, so that it cannot be found in the log again.
                send_message(session, message);
            } else {
                send_change(endpoint, session_id, session, *position, &message).await;
            }
        }
        ChangeNotice::Everything(position) => {
            let all = rules::all_changes(&record).into_iter();
            let all = all.map(EncodedChange::new).collect::<Vec<_>>();
            if let Some(stream) = session.get_streams.current() {
                stream.send_changes(*position, all.iter().filter_map(notification).collect());
            }
        }
    }
}

/// Sends the notification of a change on the stream of the current turn. If no client reads that, another one takes over.
async fn send_change(
    endpoint: &Endpoint,
    session_id: &SessionId,
    session: &ActiveSession,
    position: Position,
    message: &Bytes,
) {
    if let ChangeSender::NextTurn(stream) = session.get_streams.sender_of(position) {
        let after = Position::new(position.number().saturating_sub(1));
        let begun = begin_turn(endpoint, session_id, Some(stream.generation), after).await;
        let record = match begun {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%error, "cannot update a session; it misses a change notification");
                return;
            }
        };
        if let Some(record) = record
            && let Some(turn) = record.stream_turns.current()
        {
            let is_elsewhere = turn.sender != endpoint.sender;
            let streams = &session.get_streams;
            streams.set_turn(turn, record.version, is_elsewhere);
        }
    }
    if let ChangeSender::Stream(stream) = session.get_streams.sender_of(position) {
        stream.send_change(position, message.clone());
    }
}

/// Sends a message that is not a change of the bus, if there is a stream.
fn send_message(session: &ActiveSession, message: Bytes) {
    if let Some(stream) = session.get_streams.current() {
        stream.send_message(message);
    }
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
        send_message(&self.session, message);
        Box::pin(async {})
    }
}

#[cfg(test)]
mod tests;
