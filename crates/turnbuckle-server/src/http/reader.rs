//! A connection that reads a resumable stream.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};
use turnbuckle_protocol::codec::sse;
use turnbuckle_store::{Event, EventId};

use super::{
    body::Events,
    endpoint::Permit,
    feed::{Attached, Numbered, Taken},
    heartbeat::Heartbeat,
    presence::Present,
    stateless::WRITE_SIZE,
};
use crate::exchange::BoxFuture;

/// How long a client is asked to wait before it comes back.
const RETRY: u64 = 1_000;

/// How often a session is kept from expiring, at least where something is sent.
const KEEP: Duration = Duration::from_secs(60);

/// How often to look at the log of a stream that another process writes.
const POLL: Duration = Duration::from_secs(1);

/// What a connection has read of a stream, and what it reads next.
pub(super) struct Reader {
    present: Present,
    source: Source,
    /// The last event that was sent.
    last: EventId,
    /// How it begins, until it has begun.
    greeting: Option<Greeting>,
    /// What was read and is to be sent.
    queue: VecDeque<Numbered>,
    /// Whether the log may hold what is not in the queue.
    see_log: bool,
    over: bool,
    /// When the session is to be kept from expiring.
    keep: Instant,
    heartbeat: Heartbeat,
    /// Counts a stream that no request stands for.
    _permit: Option<Permit>,
}

/// The first thing that a connection sends.
enum Greeting {
    /// An event that has only an id to come back with.
    Primer,
    /// A comment, where clients do not know such events.
    Comment,
}

/// Where new events come from.
enum Source {
    /// From whoever writes to the stream in this process.
    Feed(Attached),
    /// From the log, which is looked at now and then: nobody in this process writes to the stream.
    Log(Pin<Box<Sleep>>),
}

/// What a reader does next.
enum Next {
    /// Sends this.
    Bytes(Bytes),
    /// Asks the store.
    Ask,
    /// Ends.
    End,
}

impl Reader {
    /// Reads what follows `last`.
    pub(super) fn new(present: Present, attached: Option<Attached>, last: EventId) -> Self {
        let heartbeat = Heartbeat::new(present.endpoint.options.stream_heartbeat);
        let source = match attached {
            Some(attached) => Source::Feed(attached),
            None => Source::Log(Box::pin(sleep(POLL))),
        };
        Self {
            present,
            source,
            last,
            greeting: None,
            queue: VecDeque::new(),
            see_log: true,
            over: false,
            keep: Instant::now() + heartbeat.period.min(KEEP),
            heartbeat,
            _permit: None,
        }
    }

    /// Begins with an event that has only an id to come back with, where clients know it, else with a comment.
    pub(super) fn greet(mut self, primes: bool) -> Self {
        self.greeting = Some(match primes {
            true => Greeting::Primer,
            false => Greeting::Comment,
        });
        self
    }

    /// Counts the stream as running.
    pub(super) fn counted(mut self, permit: Permit) -> Self {
        self._permit = Some(permit);
        self
    }

    /// Makes a body of it.
    pub(super) fn into_events(self) -> impl Events {
        ReaderEvents::Reading(self)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(greeting) = self.greeting.take() {
            return Poll::Ready(Next::Bytes(greeting.write(self.last)));
        }
        loop {
            // A client that is always behind keeps its session, too.
            if !self.queue.is_empty() && self.is_session_due(Instant::now()) {
                return Poll::Ready(Next::Ask);
            }
            if let Some(next) = self.queue.pop_front()
                && let Some(bytes) = self.write(next)
            {
                return Poll::Ready(Next::Bytes(bytes));
            }
            if self.over {
                return Poll::Ready(Next::End);
            }
            if self.see_log {
                return Poll::Ready(Next::Ask);
            }
            match self.source.poll_take(cx, &mut self.queue) {
                Poll::Ready(Taken::Event(first)) => {
                    if let Some(bytes) = self.write(first) {
                        return Poll::Ready(Next::Bytes(bytes));
                    }
                }
                Poll::Ready(Taken::SeeLog) => self.see_log = true,
                Poll::Ready(Taken::End) => self.over = true,
                Poll::Pending => return self.poll_silent(cx),
            }
        }
    }

    /// What is to be done while nothing comes.
    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let now = Instant::now();
        if self.is_session_due(now) {
            return Poll::Ready(Next::Ask);
        }
        self.heartbeat.poll(cx, now).map(Next::Bytes)
    }

    /// Asks the store what is to be known from it.
    async fn ask(mut self) -> Self {
        if self.is_session_due(Instant::now()) {
            self.keep_session().await;
        }
        if self.see_log {
            self.read_log().await;
        }
        self
    }

    fn is_session_due(&self, now: Instant) -> bool {
        now >= self.keep
    }

    /// Keeps the session from expiring while somebody is connected; one that is over ends the stream.
    async fn keep_session(&mut self) {
        self.keep = Instant::now() + self.heartbeat.period.min(KEEP);
        let sessions = &self.present.endpoint.server.store_ref().sessions;
        self.over |= matches!(sessions.load(&self.present.session).await, Ok(None));
    }

    async fn read_log(&mut self) {
        self.see_log = false;
        let events = &self.present.endpoint.server.store_ref().events;
        match events.after(&self.present.session, &self.last).await {
            Ok(Some(replay)) => {
                if replay.lost {
                    tracing::debug!(stream = %replay.stream, "events were forgotten before they were read");
                }
                let replayed = replay.events.into_iter();
                self.queue
                    .extend(replayed.map(|Event { id, data }| (id.sequence, data)));
                self.over |= replay.finished && matches!(self.source, Source::Log(_));
            }
            // Forgotten, with the session or by age.
            Ok(None) => self.over = true,
            Err(error) => {
                tracing::warn!(%error, "cannot read the log of a stream");
                self.over = true;
            }
        }
    }

    /// Writes an event, and some of what is queued; what was sent already is left out.
    fn write(&mut self, first: Numbered) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut next = Some(first);
        while let Some((sequence, data)) = next {
            if sequence > self.last.sequence {
                self.last.sequence = sequence;
                let id = self.last.text();
                sse::Event::message(&data).with_id(&id).write(&mut out);
            }
            let has_room = out.len() < WRITE_SIZE;
            next = has_room.then(|| self.queue.pop_front()).flatten();
        }
        if out.is_empty() {
            return None;
        }
        self.heartbeat.spoke();
        Some(out.into())
    }
}

impl Greeting {
    fn write(self, last: EventId) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Primer => sse::Event::message(b"")
                .with_id(&last.text())
                .with_retry(RETRY)
                .write(&mut out),
            Self::Comment => sse::write_comment(&mut out, "open"),
        }
        out.into()
    }
}

impl Source {
    fn poll_take(&mut self, cx: &mut Context<'_>, more: &mut VecDeque<Numbered>) -> Poll<Taken> {
        match self {
            Self::Feed(attached) => attached.poll_take(cx, more),
            Self::Log(look) => {
                ready!(look.as_mut().poll(cx));
                look.as_mut().reset(Instant::now() + POLL);
                Poll::Ready(Taken::SeeLog)
            }
        }
    }
}

/// A reader as the body of a response.
enum ReaderEvents {
    Reading(Reader),
    /// The reader waits for the store.
    Asking(BoxFuture<Reader>),
    Over,
}

impl ReaderEvents {
    /// Has the reader ask the store.
    fn ask(&mut self) {
        if let Self::Reading(reader) = std::mem::replace(self, Self::Over) {
            *self = Self::Asking(Box::pin(reader.ask()));
        }
    }
}

impl Events for ReaderEvents {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match &mut *self {
                Self::Reading(reader) => match ready!(reader.poll_next(cx)) {
                    Next::Bytes(bytes) => return Poll::Ready(Some(bytes)),
                    Next::Ask => self.ask(),
                    Next::End => *self = Self::Over,
                },
                Self::Asking(asking) => *self = Self::Reading(ready!(asking.as_mut().poll(cx))),
                Self::Over => return Poll::Ready(None),
            }
        }
    }
}
