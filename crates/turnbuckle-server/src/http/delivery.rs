//! The answer of a call that outlives its connection.
//!
//! A task runs the call. The connection waits until it is decided whether the answer is one JSON body or a stream;
//! a stream is written to the log, and whoever is connected reads it from there. Where the log has no room for
//! another stream, the answer is one body however long it takes.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use turnbuckle_store::{EventId, SessionId, Store, StoreError};

use super::{
    body::Body,
    endpoint::Permit,
    feed::Feed,
    presence::Present,
    reader::Reader,
    refusal,
    stateless::event_stream,
    work::{Next, Work},
};
use crate::{exchange::Answer, lifecycle::Rules, log_limiter::LogLimiter};

/// How the answer reaches the client.
enum Decision {
    /// As one JSON body.
    Json(Answer),
    /// As a stream.
    Stream(Box<Reader>),
    /// Not at all, since the client cancelled.
    Nothing,
}

/// Gives calls to a task of their own, and answers with what comes of them.
pub(super) async fn deliver(
    work: Work,
    rules: &'static Rules,
    present: Present,
    permit: Permit,
) -> Response<Body> {
    let (decide, decided) = oneshot::channel();
    let delivery = Delivery {
        work,
        rules,
        present,
        _permit: permit,
    };
    tokio::spawn(delivery.run(decide));
    match decided.await {
        Ok(Decision::Json(answer)) => refusal::answer(answer),
        Ok(Decision::Stream(reader)) => event_stream(Body::events(reader.into_events())),
        Ok(Decision::Nothing) => event_stream(Body::empty()),
        // The runtime is shutting down.
        Err(_) => refusal::empty(StatusCode::SERVICE_UNAVAILABLE),
    }
}

struct Delivery {
    work: Work,
    rules: &'static Rules,
    present: Present,
    _permit: Permit,
}

impl Delivery {
    async fn run(mut self, decide: oneshot::Sender<Decision>) {
        let Some((first, hangs_up)) = self.until_stream().await else {
            return self.answer(decide);
        };
        let sink = match Sink::open(&self.present).await {
            Ok(sink) => sink,
            Err(error) => {
                if let Some(suppressed) = self.present.endpoint.logs.no_stream.pass() {
                    tracing::warn!(%error, suppressed, "no room for a stream: what comes before the answer is not sent");
                }
                while !matches!(self.work.next().await, Next::Done) {}
                return self.answer(decide);
            }
        };
        let reader = Reader::new(self.present.clone(), Some(sink.feed.attach()), sink.start)
            .greet(self.rules.primes_streams);
        let _ = decide.send(Decision::Stream(Box::new(reader)));
        if hangs_up {
            sink.feed.hang_up();
        }
        for message in first.into_iter().chain(self.work.take_answers()) {
            sink.send(message).await;
        }
        self.stream(&sink).await;
        sink.close().await;
    }

    /// Answers with one body.
    fn answer(self, decide: oneshot::Sender<Decision>) {
        self.present.presence.live.has_answered();
        let decision = self
            .work
            .into_answer()
            .map_or(Decision::Nothing, Decision::Json);
        // A connection that is lost before it got an id cannot ask for the answer.
        let _ = decide.send(decision);
    }

    /// Runs the calls while the answer may be one body. `None` if it is; else what begins the stream.
    async fn until_stream(&mut self) -> Option<(Option<Bytes>, bool)> {
        let deadline = Instant::now() + self.present.endpoint.options.stream_after;
        loop {
            match timeout_at(deadline, self.work.next()).await {
                Ok(Next::Done) => return None,
                Ok(Next::Answered) => {}
                Ok(Next::Message(message)) => return Some((Some(message), false)),
                Ok(Next::HangUp) if self.rules.primes_streams => return Some((None, true)),
                Ok(Next::HangUp) => {}
                Err(_) => return Some((None, false)),
            }
        }
    }

    async fn stream(&mut self, sink: &Sink) {
        loop {
            match self.work.next().await {
                Next::Done => return,
                Next::Message(message) => sink.send(message).await,
                Next::HangUp if self.rules.primes_streams => sink.feed.hang_up(),
                Next::HangUp => {}
                Next::Answered => {
                    self.present.presence.live.has_answered();
                    for answer in self.work.take_answers() {
                        sink.send(answer).await;
                    }
                }
            }
        }
    }
}

/// A stream that is written to.
pub(super) struct Sink {
    pub(super) feed: Arc<Feed>,
    /// An id before everything that is sent.
    pub(super) start: EventId,
    present: Present,
}

impl Sink {
    /// Opens a stream.
    pub(super) async fn open(present: &Present) -> Result<Self, StoreError> {
        let (store, session) = (present.endpoint.server.store_ref(), &present.session);
        let stream = store.events.open(session).await?;
        let start = store.events.append(session, &stream, Bytes::new()).await?;
        let feed = Feed::new(stream);
        present.presence.add(&feed);
        Ok(Self {
            feed,
            start,
            present: present.clone(),
        })
    }

    /// Sends an event; waits while a connection is slow to read.
    pub(super) async fn send(&self, message: Bytes) {
        // A stream that is gone went with its session, and so did whoever wanted the answer.
        append(self.store(), self.session(), &self.feed, message).await;
        self.feed.has_room().await;
    }

    /// Says that nothing more comes.
    pub(super) async fn close(&self) {
        let finished = self
            .store()
            .events
            .finish(self.session(), &self.feed.stream)
            .await;
        if let Err(error) = finished {
            tracing::warn!(%error, "cannot finish a stream");
        }
        self.feed.finish();
        self.present.presence.remove(self.feed.stream);
    }

    fn store(&self) -> &Store {
        self.present.endpoint.server.store_ref()
    }

    fn session(&self) -> &SessionId {
        &self.present.session
    }
}

/// Puts an event into the log, then before whoever reads. Says whether the stream is still there.
pub(super) async fn append(
    store: &Store,
    session: &SessionId,
    feed: &Feed,
    message: Bytes,
) -> bool {
    let appended = store
        .events
        .append(session, &feed.stream, message.clone())
        .await;
    hand_on(feed, appended, message)
}

/// Puts an event that is in the log before whoever reads. Says whether the stream is still there.
pub(super) fn hand_on(feed: &Feed, appended: Result<EventId, StoreError>, message: Bytes) -> bool {
    match appended {
        Ok(id) => feed.push(id.sequence, message),
        Err(StoreError::Gone { .. }) => return false,
        Err(error) => {
            static LOST: LogLimiter = LogLimiter::new();
            if let Some(suppressed) = LOST.pass() {
                tracing::warn!(%error, suppressed, "an event is lost");
            }
        }
    }
    true
}
