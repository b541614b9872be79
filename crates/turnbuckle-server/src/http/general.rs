//! GET: the stream of a session that belongs to no call, and streams that are resumed.
//!
//! Changes go into the log of the newest stream that somebody reads, so that each is told once. A stream stays for a
//! while after its connection was lost, so that a client that comes back misses nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Response, StatusCode};
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{EventId, Replay};

use super::{
    body::Body,
    delivery::Sink,
    endpoint::{Endpoint, Head, Permit},
    feed::Feed,
    known::{self, Known},
    link::Link,
    mirror::LAST_EVENT_ID,
    post,
    presence::lock,
    pump::{self, finish},
    reader::Reader,
    refusal,
    stateless::event_stream,
};

/// How long changes are kept for a client that lost its connection.
const LINGER: Duration = Duration::from_secs(5 * 60);

/// The general streams of a session.
#[derive(Default)]
pub(super) struct GeneralStreams {
    feeds: Mutex<Feeds>,
}

/// Most sessions have one stream, so the newest is at hand.
#[derive(Default)]
struct Feeds {
    newest: Option<Arc<Feed>>,
    /// Oldest first; empty if there is no newest.
    older: Vec<Arc<Feed>>,
    /// Whether it is known that the session is told of changes of lists.
    is_told: bool,
}

impl Feeds {
    fn push(&mut self, feed: Arc<Feed>) {
        if let Some(older) = self.newest.replace(feed) {
            older.set_takes_lists(false);
            self.older.push(older);
        }
        self.settle();
    }

    /// Lets a change of a list go to the only stream without a look at the session, if that is told.
    fn settle(&self) {
        if let Some(only) = &self.newest
            && self.older.is_empty()
        {
            only.set_takes_lists(self.is_told);
        }
    }

    fn take_all(&mut self) -> Vec<Arc<Feed>> {
        let mut all = std::mem::take(&mut self.older);
        all.extend(self.newest.take());
        all.iter().for_each(|feed| feed.set_takes_lists(false));
        all
    }

    /// Takes some of them.
    fn take(&mut self, which: impl FnMut(&Arc<Feed>) -> bool) -> Vec<Arc<Feed>> {
        let all = self.take_all().into_iter();
        let (taken, rest): (Vec<_>, _) = all.partition(which);
        self.older = rest;
        self.newest = self.older.pop();
        self.settle();
        taken
    }

    /// Takes those that nobody has read since a time that is long enough ago.
    fn take_unread(&mut self, is_over: impl Fn(Instant) -> bool) -> Vec<Arc<Feed>> {
        self.take(|feed| feed.unread_since().is_some_and(&is_over))
    }
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
            resume(endpoint, &known, &head.link, last, permit).await
        }
        None => open(endpoint, &known, &head.link, permit).await,
    }
}

/// Goes on with the stream that an event belongs to.
async fn resume(
    endpoint: &Arc<Endpoint>,
    known: &Known,
    link: &Link,
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
    let present = known.enter(endpoint, link);
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
async fn open(
    endpoint: &Arc<Endpoint>,
    known: &Known,
    link: &Link,
    permit: Permit,
) -> Response<Body> {
    let present = known.enter(endpoint, link);
    let sink = match Sink::open(&present).await {
        Ok(sink) => sink,
        Err(error) => return refusal::busy(None, error.to_string()),
    };
    let attached = sink.feed.attach();
    let replaced = present.presence.general.add(&sink.feed);
    endpoint.presences.join(present.session, &present.presence);
    // Before the client hears of its stream: what changes afterwards must not be missed.
    pump::start(endpoint);
    for feed in replaced {
        finish(endpoint, &present.session, &present.presence, &feed).await;
    }
    let reader = Reader::new(present, Some(attached), sink.start)
        .greet(known.rules().primes_streams)
        .counted(permit);
    event_stream(Body::events(reader.into_events()))
}

impl GeneralStreams {
    /// Adds a stream. Returns those that it replaces because nobody reads them.
    pub(super) fn add(&self, feed: &Arc<Feed>) -> Vec<Arc<Feed>> {
        let mut feeds = lock(&self.feeds);
        let replaced = feeds.take_unread(|_| true);
        feeds.push(feed.clone());
        replaced
    }

    /// Notes that from now on the session is told of every change of a list.
    pub(super) fn set_told(&self) {
        let mut feeds = lock(&self.feeds);
        feeds.is_told = true;
        feeds.settle();
    }

    /// Says whether it is known that the session is told of every change of a list.
    pub(super) fn is_told(&self) -> bool {
        lock(&self.feeds).is_told
    }

    /// The newest stream.
    pub(super) fn newest(&self) -> Option<Arc<Feed>> {
        lock(&self.feeds).newest.clone()
    }

    /// Says whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.feeds).newest.is_none()
    }

    /// The stream that the next message goes to: the newest that somebody reads, else the newest.
    pub(super) fn current(&self) -> Option<Arc<Feed>> {
        let feeds = lock(&self.feeds);
        let is_read = |feed: &&Arc<Feed>| feed.unread_since().is_none();
        let newest = feeds.newest.as_ref()?;
        if feeds.older.is_empty() || is_read(&newest) {
            return Some(newest.clone());
        }
        let mut from_newest = feeds.older.iter().rev();
        from_newest.find(is_read).or(Some(newest)).cloned()
    }

    /// Lets go of a stream.
    pub(super) fn remove(&self, gone: &Arc<Feed>) {
        let mut feeds = lock(&self.feeds);
        feeds.take(|feed| Arc::ptr_eq(feed, gone));
    }

    /// Takes the streams that nobody has read for a long time.
    pub(super) fn expire(&self, now: Instant) -> Vec<Arc<Feed>> {
        lock(&self.feeds).take_unread(|since| now - since >= LINGER)
    }

    /// Takes them all.
    pub(super) fn take_all(&self) -> Vec<Arc<Feed>> {
        lock(&self.feeds).take_all()
    }
}
