//! GET: the stream of a session that belongs to no call, and streams that are resumed.
//!
//! A task moves changes into the log of the newest stream that somebody reads, so that each is told once. It stays
//! for a while after the last connection was lost, so that a client that comes back misses nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Response, StatusCode};
use tokio::time::{Instant, sleep};
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{Change, EventId, Lagged, Replay, Subscription};

use super::{
    body::Body,
    delivery::{Sink, append},
    endpoint::{Endpoint, Head, Permit},
    feed::Feed,
    known::{self, Known},
    mirror::LAST_EVENT_ID,
    post,
    presence::{Present, lock},
    reader::Reader,
    refusal,
    stateless::event_stream,
};
use crate::lifecycle::session as rules;

/// How long changes are kept for a client that lost its connection.
const LINGER: Duration = Duration::from_secs(5 * 60);

/// How often to see whether anybody still reads.
const LOOK: Duration = Duration::from_secs(30);

/// The general streams of a session.
#[derive(Default)]
pub(super) struct GeneralStreams {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    feeds: Vec<Arc<Feed>>,
    pumping: bool,
}

/// Answers a GET on the endpoint.
pub(super) async fn get(endpoint: &Arc<Endpoint>, head: Head) -> Response<Body> {
    let known = match known::find(endpoint, &head, None).await {
        Ok(known) => known,
        Err(refusal) => return refusal,
    };
    if !post::accepts(&head.headers).event_stream {
        return refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "send `Accept: text/event-stream`",
        );
    }
    let permit = match endpoint.admit() {
        Ok(permit) => permit,
        Err(refusal) => return refusal,
    };
    match head.headers.get(LAST_EVENT_ID) {
        Some(last) => {
            let last = last.to_str().ok().and_then(|last| last.parse().ok());
            resume(endpoint, &known, last, permit).await
        }
        None => open(endpoint, &known, permit).await,
    }
}

/// Goes on with the stream that an event belongs to.
async fn resume(
    endpoint: &Arc<Endpoint>,
    known: &Known,
    last: Option<EventId>,
    permit: Permit,
) -> Response<Body> {
    let events = &endpoint.server.store_ref().events;
    let replay = match &last {
        Some(last) => events.after(&known.id, last).await,
        None => Ok(None),
    };
    let last = match (replay, last) {
        (Ok(Some(replay)), Some(last)) if !lacks_its_end(&replay) => last,
        (Err(error), _) => return refusal::busy(None, error.to_string()),
        // Not 404: the client would take its session for lost.
        _ => {
            return refusal::error(
                StatusCode::BAD_REQUEST,
                None,
                &RpcError::invalid_request(
                    "`Last-Event-ID` names no event of this session that is still known, or one whose stream \
                     has since ended with an answer that is not; open a new stream without it",
                ),
            );
        }
    };
    let present = known.enter(endpoint).await;
    let attached = present.presence.feed(last.stream).map(|feed| feed.attach());
    let reader = Reader::new(present, attached, last)
        .greet(false)
        .counted(permit);
    event_stream(Body::events(reader.into_events()))
}

/// Says whether the last event of a finished stream is forgotten, with the answer most likely.
///
/// Who resumes such a stream would see it end without a word, and come back again and again. A gap further up is
/// not told: what the client waits for still comes.
fn lacks_its_end(replay: &Replay) -> bool {
    replay.lost && replay.finished && replay.events.is_empty()
}

/// Opens a new stream.
async fn open(endpoint: &Arc<Endpoint>, known: &Known, permit: Permit) -> Response<Body> {
    let present = known.enter(endpoint).await;
    // Before the client hears of its stream: what changes afterwards must not be missed.
    let changes = endpoint.server.store_ref().bus.subscribe();
    let sink = match Sink::open(&present).await {
        Ok(sink) => sink,
        Err(error) => return refusal::busy(None, error.to_string()),
    };
    let attached = sink.feed.attach();
    let (replaced, pump) = present.presence.general.add(&sink.feed);
    for feed in replaced {
        finish(&present, &feed).await;
    }
    if pump {
        tokio::spawn(pump_changes(present.clone(), changes));
    }
    let reader = Reader::new(present, Some(attached), sink.start)
        .greet(known.rules().primes_streams)
        .counted(permit);
    event_stream(Body::events(reader.into_events()))
}

impl GeneralStreams {
    /// Adds a stream. Returns those that it replaces because nobody reads them, and whether a pump is needed.
    fn add(&self, feed: &Arc<Feed>) -> (Vec<Arc<Feed>>, bool) {
        let mut state = lock(&self.state);
        let replaced = state.take_unread(|_| true);
        state.feeds.push(feed.clone());
        let pump = !std::mem::replace(&mut state.pumping, true);
        (replaced, pump)
    }

    /// The stream that the next message goes to: the newest that somebody reads, else the newest.
    fn current(&self) -> Option<Arc<Feed>> {
        let state = lock(&self.state);
        let read = |feed: &&Arc<Feed>| feed.unread_since().is_none();
        let feed = state.feeds.iter().rev().find(read);
        feed.or(state.feeds.last()).cloned()
    }

    /// Takes the streams that nobody has read for a long time; says whether any is left to pump to.
    fn expire(&self, now: Instant) -> (Vec<Arc<Feed>>, bool) {
        let mut state = lock(&self.state);
        let expired = state.take_unread(|since| now - since >= LINGER);
        state.pumping = !state.feeds.is_empty();
        (expired, state.pumping)
    }

    fn take_all(&self) -> Vec<Arc<Feed>> {
        let mut state = lock(&self.state);
        state.pumping = false;
        std::mem::take(&mut state.feeds)
    }
}

impl State {
    fn take_unread(&mut self, is_over: impl Fn(Instant) -> bool) -> Vec<Arc<Feed>> {
        self.feeds
            .extract_if(.., |feed| feed.unread_since().is_some_and(&is_over))
            .collect()
    }
}

/// Moves changes into the log while somebody reads, or may come back to.
async fn pump_changes(present: Present, mut changes: Subscription) {
    let presence = &present.presence;
    loop {
        tokio::select! {
            biased;
            () = presence.closed() => break,
            () = present.endpoint.closed() => break,
            change = changes.next() => if !tell(&present, change).await {
                break;
            },
            () = sleep(LOOK) => {}
        }
        let (expired, goes_on) = presence.general.expire(Instant::now());
        for feed in expired {
            finish(&present, &feed).await;
        }
        if !goes_on {
            return;
        }
    }
    for feed in presence.general.take_all() {
        finish(&present, &feed).await;
    }
}

/// Tells a session what changed, as far as it wants to know; says whether there still is a session.
async fn tell(present: &Present, change: Result<Change, Lagged>) -> bool {
    let server = &present.endpoint.server;
    let store = server.store_ref();
    let record = match store.sessions.load(&present.session).await {
        Ok(Some(record)) => record,
        Ok(None) => return false,
        Err(error) => {
            tracing::warn!(%error, "a change is not told to a session");
            return true;
        }
    };
    let changes = match change {
        Ok(change) => vec![change],
        Err(Lagged { .. }) => rules::all_changes(&record),
    };
    for change in changes {
        let live = &present.presence.live;
        let message = rules::notice(server, &record, present.session, live, &change);
        if let (Some(message), Some(feed)) = (message, present.presence.general.current()) {
            append(store, &present.session, &feed, message.into()).await;
        }
    }
    true
}

async fn finish(present: &Present, feed: &Feed) {
    let events = &present.endpoint.server.store_ref().events;
    if let Err(error) = events.finish(&present.session, &feed.stream).await {
        tracing::warn!(%error, "cannot finish a stream");
    }
    feed.finish();
    present.presence.remove(feed.stream);
}
