//! From the bus to the general streams of all sessions.
//!
//! One task per endpoint, however many sessions have streams. It begins with the first stream and ends when there is
//! none left, or with the endpoint.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use tokio::{
    task::{JoinHandle, consume_budget},
    time::{Instant, sleep_until},
};
use turnbuckle_store::{Lagged, SessionId, Subscription};

use super::{
    delivery::append,
    endpoint::Endpoint,
    feed::Feed,
    presence::{Presence, lock},
};
use crate::{lifecycle::session as rules, subscriptions::Announcement};

/// How often to see whether anybody still reads.
const LOOK: Duration = Duration::from_secs(30);

/// The pump of an endpoint, while it runs.
#[derive(Default)]
pub(super) struct Pump {
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Sees to it that changes from now on reach the general streams.
pub(super) fn start(endpoint: &Arc<Endpoint>) {
    let mut task = lock(&endpoint.pump.task);
    if task.as_ref().is_none_or(JoinHandle::is_finished) {
        let changes = endpoint.server.store_ref().bus.subscribe();
        *task = Some(tokio::spawn(run(endpoint.clone(), changes)));
    }
}

/// Ends a stream.
pub(super) async fn finish(
    endpoint: &Endpoint,
    session: &SessionId,
    presence: &Presence,
    feed: &Feed,
) {
    let events = &endpoint.server.store_ref().events;
    if let Err(error) = events.finish(session, &feed.stream).await {
        tracing::warn!(%error, "cannot finish a stream");
    }
    feed.finish();
    presence.remove(feed.stream);
}

async fn run(endpoint: Arc<Endpoint>, mut changes: Subscription) {
    let mut look = Instant::now() + LOOK;
    loop {
        tokio::select! {
            biased;
            () = endpoint.closed() => break,
            change = changes.next() => tell_all(&endpoint, change.map(Announcement::new)).await,
            () = sleep_until(look) => {
                look = Instant::now() + LOOK;
                end_streams(&endpoint, |presence| presence.general.expire(Instant::now())).await;
                if stops(&endpoint) {
                    return;
                }
            }
        }
    }
    while !stops(&endpoint) {
        end_streams(&endpoint, |presence| presence.general.take_all()).await;
    }
}

/// Says whether no stream is left: then whoever opens the next one starts another pump.
fn stops(endpoint: &Endpoint) -> bool {
    let mut task = lock(&endpoint.pump.task);
    let over = endpoint.presences.with_streams().all(|s| s.is_empty());
    if over {
        *task = None;
    }
    over
}

/// Ends some streams of every session.
async fn end_streams(endpoint: &Endpoint, which: impl Fn(&Presence) -> Vec<Arc<Feed>>) {
    for (session, presence) in endpoint.presences.with_streams().flatten() {
        for feed in which(&presence) {
            finish(endpoint, &session, &presence, &feed).await;
        }
        endpoint.presences.tidy(&session);
    }
}

/// Tells every session that has a stream what changed.
async fn tell_all(endpoint: &Endpoint, change: Result<Announcement, Lagged>) {
    let shards = endpoint.presences.with_streams();
    let mut telling: Vec<_> = shards
        .filter(|sessions| !sessions.is_empty())
        .map(|sessions| Box::pin(tell_some(endpoint, sessions, &change)))
        .collect();
    // Side by side, so that a store that takes its time for one session holds up few others.
    poll_fn(|cx| {
        telling.retain_mut(|telling| telling.as_mut().poll(cx).is_pending());
        if telling.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

async fn tell_some(
    endpoint: &Endpoint,
    sessions: Vec<(SessionId, Arc<Presence>)>,
    change: &Result<Announcement, Lagged>,
) {
    for (session, presence) in sessions {
        tell(endpoint, session, &presence, change).await;
        // Others have work too, and the streams want to be written.
        consume_budget().await;
    }
}

/// Tells a session what changed, as far as it wants to know.
async fn tell(
    endpoint: &Endpoint,
    session: SessionId,
    presence: &Presence,
    change: &Result<Announcement, Lagged>,
) {
    let server = &endpoint.server;
    let store = server.store_ref();
    let record = match store.sessions.load(&session).await {
        Ok(Some(record)) => record,
        Ok(None) => {
            for feed in presence.general.take_all() {
                finish(endpoint, &session, presence, &feed).await;
            }
            endpoint.presences.tidy(&session);
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "a change is not told to a session");
            return;
        }
    };
    let missed: Vec<_>;
    let announcements = match change {
        Ok(announcement) => std::slice::from_ref(announcement),
        Err(Lagged { .. }) => {
            let changes = rules::all_changes(&record).into_iter();
            missed = changes.map(Announcement::new).collect();
            &missed
        }
    };
    for announcement in announcements {
        let message = rules::notice(server, &record, session, &presence.live, announcement);
        if let (Some(message), Some(feed)) = (message, presence.general.current()) {
            append(store, &session, &feed, message).await;
        }
    }
}
