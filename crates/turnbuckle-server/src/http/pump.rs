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
    delivery::append,
    endpoint::Endpoint,
    feed::Feed,
    general::GeneralStreams,
    presence::{Presence, lock},
};
use crate::{lifecycle::session as rules, subscriptions::Announcement};

/// How often to see whether anybody still reads.
const LOOK: Duration = Duration::from_secs(30);

/// How many sessions are told at the same time.
const AT_ONCE: usize = 32;

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
            change = changes.next() => tell_all(&endpoint, change.map(Announcement::new)).await,
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
    for (session, presence) in endpoint.presences.audience() {
        for feed in which(&presence.general) {
            finish(endpoint, &session, &presence, &feed).await;
        }
        endpoint.presences.tidy(&session, &presence);
    }
}

/// Tells every session that has a stream what changed.
async fn tell_all(endpoint: &Endpoint, change: Result<Announcement, Lagged>) {
    let audience = endpoint.presences.audience();
    let next = AtomicUsize::new(0);
    // Side by side, so that a store that takes its time for one session holds up few others.
    let mut telling: Vec<_> =
        std::iter::repeat_with(|| tell_some(endpoint, &audience, &next, &change))
            .map(Box::pin)
            .take(audience.len().min(AT_ONCE))
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

/// Tells whoever is next, until nobody is.
async fn tell_some(
    endpoint: &Endpoint,
    audience: &[(SessionId, Arc<Presence>)],
    next: &AtomicUsize,
    change: &Result<Announcement, Lagged>,
) {
    while let Some((session, presence)) = audience.get(next.fetch_add(1, Ordering::Relaxed)) {
        match change {
            // Most changes, to most sessions: what there is to know of them is known.
            Ok(announcement) if announcement.is_for_everyone() && presence.is_told() => {
                deliver(endpoint, session, presence, &announcement.message).await;
            }
            change => tell(endpoint, session, presence, change).await,
        }
        // Others have work too, and the streams want to be written.
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
    if rules::is_told_of_lists(&record) {
        presence.set_told();
    }
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
    }
    endpoint.presences.tidy(session, presence);
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        task::{Context, Waker},
    };

    use turnbuckle_protocol::Revision;
    use turnbuckle_store::{Change, ClientProfile, SessionChange, SessionRecord};

    use super::*;
    use crate::{
        Server,
        http::{
            Options,
            delivery::Sink,
            feed::{Attached, Taken},
            presence::{Presences, Present},
        },
    };

    async fn session() -> (Arc<Endpoint>, Present) {
        let server = Server::new("test", "1.0.0");
        let endpoint = Arc::new(Endpoint::new(server, Options::default(), None));
        let record = SessionRecord::new(None, Revision::V2025_11_25, ClientProfile::default());
        let sessions = &endpoint.server.store_ref().sessions;
        let id = sessions.create(record).await.unwrap();
        let change = SessionChange::Initialized;
        sessions.update(&id, change).await.unwrap().unwrap();
        let present = Presences::enter(&endpoint, id);
        (endpoint, present)
    }

    /// Opens a stream, as GET does.
    async fn open(present: &Present) -> Arc<Feed> {
        let feed = Sink::open(present).await.unwrap().feed;
        present.presence.general.add(&feed);
        let presences = &present.endpoint.presences;
        presences.join(present.session, &present.presence);
        feed
    }

    async fn tell(endpoint: &Endpoint, audience: &[(SessionId, Arc<Presence>)], change: Change) {
        let change = Ok(Announcement::new(change));
        tell_some(endpoint, audience, &AtomicUsize::new(0), &change).await;
    }

    /// Says whether an event waits; it is taken.
    fn takes(reader: &Attached) -> bool {
        let taken = reader.poll_take(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
        matches!(taken, Poll::Ready(Taken::Event(_)))
    }

    #[tokio::test]
    async fn a_stream_that_is_opened_while_others_are_told_is_told_in_place_of_the_older() {
        for is_told_before in [false, true] {
            let (endpoint, present) = session().await;
            let older = open(&present).await.attach();
            let audience = endpoint.presences.audience();
            if is_told_before {
                tell(&endpoint, &audience, Change::ToolsChanged).await;
                assert!(takes(&older));
            }
            let newer = open(&present).await.attach();

            tell(&endpoint, &audience, Change::ToolsChanged).await;

            assert!(takes(&newer) && !takes(&older), "{is_told_before}");
        }
    }

    #[tokio::test]
    async fn a_stream_that_the_store_lost_ends_and_another_is_told() {
        let (endpoint, present) = session().await;
        let older = open(&present).await.attach();
        let newer = open(&present).await;
        let reader = newer.attach();
        let events = &endpoint.server.store_ref().events;
        let (session, stream) = (&present.session, &newer.stream);
        events.finish(session, stream).await.unwrap();

        let audience = endpoint.presences.audience();
        tell(&endpoint, &audience, Change::ToolsChanged).await;

        assert!(takes(&older));
        let end = reader.poll_take(&Context::from_waker(Waker::noop()), &mut VecDeque::new());
        assert!(matches!(end, Poll::Ready(Taken::End)));
    }

    #[tokio::test]
    async fn a_session_that_was_told_of_lists_is_looked_at_only_for_other_changes() {
        let (endpoint, present) = session().await;
        let reader = open(&present).await.attach();
        let audience = endpoint.presences.audience();
        tell(&endpoint, &audience, Change::ToolsChanged).await;
        assert!(takes(&reader));

        let sessions = &endpoint.server.store_ref().sessions;
        sessions.remove(&present.session).await.unwrap();
        tell(&endpoint, &audience, Change::PromptsChanged).await;
        assert!(takes(&reader), "its end is found out by whoever reads");
        let uri = "test://a".into();
        tell(&endpoint, &audience, Change::ResourceUpdated { uri }).await;

        assert!(endpoint.presences.has_no_audience());
    }

    #[tokio::test]
    async fn the_streams_of_a_session_go_with_it() {
        let (endpoint, present) = session().await;
        let _feeds = [open(&present).await, open(&present).await];
        assert_eq!(endpoint.presences.audience().len(), 1);

        endpoint.presences.close(&present.session);

        assert!(endpoint.presences.has_no_audience());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_nobody_reads_goes_after_a_while() {
        let (endpoint, present) = session().await;
        open(&present).await;
        start(&endpoint);
        drop(present);

        tokio::time::sleep(Duration::from_secs(4 * 60)).await;
        assert_eq!(endpoint.presences.audience().len(), 1);
        tokio::time::sleep(Duration::from_secs(2 * 60)).await;

        assert!(endpoint.presences.has_no_audience());
        assert_eq!(endpoint.presences.len(), 0);
        assert!(lock(&endpoint.pump.task).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_was_opened_while_its_session_ended_goes_soon() {
        let (endpoint, present) = session().await;
        endpoint.presences.close(&present.session);
        let _reader = open(&present).await.attach();
        start(&endpoint);
        assert!(!endpoint.presences.has_no_audience());

        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(endpoint.presences.has_no_audience());
    }
}
