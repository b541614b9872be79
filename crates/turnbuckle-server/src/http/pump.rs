//! From the bus to the general streams of all sessions.
//!
//! One task per endpoint, however many sessions have streams. It begins with the first stream and ends when there is
//! none left, or with the endpoint.

use std::{
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
use turnbuckle_store::{Lagged, SessionId, Subscription};

use super::{
    audience::Seat,
    delivery::{append, hand_on},
    endpoint::Endpoint,
    feed::Feed,
    general::GeneralStreams,
    presence::{Presence, lock},
};
use crate::{lifecycle::session as rules, subscriptions::Announcement};

/// How often to see whether anybody still reads.
const LOOK: Duration = Duration::from_secs(30);

/// How many sessions are told at the same time, where each is told for itself.
const AT_ONCE: usize = 32;

/// How many streams the store is given an event for at once.
const TOGETHER: usize = 256;

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
    feed.finish();
    presence.remove(feed.stream);
    let events = &endpoint.server.store_ref().events;
    if let Err(error) = events.finish(session, &feed.stream).await {
        tracing::warn!(%error, "cannot finish a stream");
    }
}

async fn run(endpoint: Arc<Endpoint>, mut changes: Subscription) {
    let mut look = Instant::now() + LOOK;
    loop {
        tokio::select! {
            biased;
            () = endpoint.closed() => break,
            change = changes.next() => {
                let audience = endpoint.presences.audience();
                tell_all(&endpoint, &audience, &change.map(Announcement::new)).await;
            }
            () = sleep_until(look) => {
                look = Instant::now() + LOOK;
                end_streams(&endpoint, |streams| streams.expire(Instant::now())).await;
                if stops(&endpoint) {
                    return;
                }
            }
        }
    }
    while !stops(&endpoint) {
        end_streams(&endpoint, GeneralStreams::take_all).await;
    }
}

/// Says whether no stream is left: then whoever opens the next one starts another pump.
fn stops(endpoint: &Endpoint) -> bool {
    let mut task = lock(&endpoint.pump.task);
    let over = endpoint.presences.has_no_audience();
    if over {
        *task = None;
    }
    over
}

/// Ends some streams of every session.
async fn end_streams(endpoint: &Endpoint, which: impl Fn(&GeneralStreams) -> Vec<Arc<Feed>>) {
    for Seat {
        session, presence, ..
    } in endpoint.presences.audience().iter()
    {
        let ended = which(&presence.general);
        for feed in &ended {
            finish(endpoint, session, presence, feed).await;
        }
        if !ended.is_empty() || presence.is_closed() || presence.general.is_empty() {
            endpoint.presences.tidy(session, presence);
        }
    }
}

/// Tells every session that has a stream what changed.
async fn tell_all(endpoint: &Endpoint, audience: &[Seat], change: &Result<Announcement, Lagged>) {
    let rest = match change {
        Ok(announcement) if announcement.is_for_everyone() => {
            tell_known(endpoint, audience, announcement).await
        }
        _ => audience.iter().collect(),
    };
    let next = AtomicUsize::new(0);
    // Side by side, so that a store that takes its time for one session holds up few others.
    let mut telling: Vec<_> = std::iter::repeat_with(|| tell_some(endpoint, &rest, &next, change))
        .map(Box::pin)
        .take(rest.len().min(AT_ONCE))
        .collect();
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

/// Tells of a change of a list where it is known to which stream it goes; returns the others.
///
/// So it is with most changes and most sessions, and of those nothing but the stream is looked at.
async fn tell_known<'a>(
    endpoint: &Endpoint,
    audience: &'a [Seat],
    announcement: &Announcement,
) -> Vec<&'a Seat> {
    let (events, message) = (&endpoint.server.store_ref().events, &announcement.message);
    let mut others = Vec::new();
    for some in audience.chunks(TOGETHER) {
        let mut known = Vec::with_capacity(some.len());
        for seat in some {
            match &seat.newest {
                Some(feed) if feed.takes_lists() => known.push((seat, feed)),
                _ => others.push(seat),
            }
        }
        if known.is_empty() {
            continue;
        }
        let streams: Vec<_> = known
            .iter()
            .map(|(seat, feed)| (seat.session, feed.stream))
            .collect();
        let appended = events.append_each(&streams, message.clone()).await;
        for ((seat, feed), appended) in known.into_iter().zip(appended) {
            if !hand_on(feed, appended, message.clone()) {
                others.push(seat);
            }
            // Others have work too, and the streams want to be written.
            consume_budget().await;
        }
    }
    others
}

/// Tells whoever is next, until nobody is.
async fn tell_some(
    endpoint: &Endpoint,
    audience: &[&Seat],
    next: &AtomicUsize,
    change: &Result<Announcement, Lagged>,
) {
    while let Some(seat) = audience.get(next.fetch_add(1, Ordering::Relaxed)) {
        let (session, presence) = (&seat.session, &seat.presence);
        match change {
            Ok(announcement) if announcement.is_for_everyone() && presence.general.is_told() => {
                deliver(endpoint, session, presence, &announcement.message).await;
            }
            change => tell(endpoint, session, presence, change).await,
        }
        consume_budget().await;
    }
}

/// Tells a session what changed, as far as it wants to know.
async fn tell(
    endpoint: &Endpoint,
    session: &SessionId,
    presence: &Presence,
    change: &Result<Announcement, Lagged>,
) {
    let server = &endpoint.server;
    let record = match server.store_ref().sessions.load(session).await {
        Ok(Some(record)) => record,
        Ok(None) => {
            for feed in presence.general.take_all() {
                finish(endpoint, session, presence, &feed).await;
            }
            endpoint.presences.tidy(session, presence);
            return;
        }
        Err(error) => {
            tracing::warn!(%error, "a change is not told to a session");
            return;
        }
    };
    presence.general.set_told();
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
        let message = rules::notice(server, &record, *session, &presence.live, announcement);
        if let Some(message) = message {
            deliver(endpoint, session, presence, &message).await;
        }
    }
}

/// Sends a message on the stream of a session; one that the store no longer has is over.
async fn deliver(endpoint: &Endpoint, session: &SessionId, presence: &Presence, message: &Bytes) {
    let store = endpoint.server.store_ref();
    while let Some(feed) = presence.general.current() {
        if append(store, session, &feed, message.clone()).await {
            return;
        }
        presence.general.remove(&feed);
        finish(endpoint, session, presence, &feed).await;
        endpoint.presences.tidy(session, presence);
    }
    endpoint.presences.tidy(session, presence);
}

#[cfg(test)]
mod tests;
