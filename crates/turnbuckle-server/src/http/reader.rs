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
    feed::{Attached, Taken},
    heartbeat::Heartbeat,
    presence::Present,
    stateless::WRITE_SIZE,
};
use crate::exchange::BoxFuture;

/// How long a client is asked to wait before it comes back.
const RETRY: u64 = 1_000;

/// How often to look at the log of a stream that another process writes.
const POLL: Duration = Duration::from_secs(1);

/// What a connection has read of a stream, and what it reads next.
pub(super) struct Reader {
    present: Present,
    source: Source,
    /// The last event that was sent.
    last: EventId,
    greeting: Vec<u8>,
    queue: VecDeque<(EventId, Bytes)>,
    /// Whether the log may hold what is not in the queue.
    see_log: bool,
    over: bool,
    /// When the session was last kept from expiring.
    touched: Instant,
    heartbeat: Heartbeat,
    /// Counts a stream that no request stands for.
    _permit: Option<Permit>,
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
            greeting: Vec::new(),
            queue: VecDeque::new(),
            see_log: true,
            over: false,
            touched: Instant::now(),
            heartbeat,
            _permit: None,
        }
    }

    /// Begins with an event that has only an id to come back with, where clients know it, else with a comment.
    pub(super) fn greet(mut self, primes: bool) -> Self {
        if primes {
            let id = self.last.to_string();
            sse::Event::message(b"")
                .with_id(&id)
                .with_retry(RETRY)
                .write(&mut self.greeting);
        } else {
            sse::write_comment(&mut self.greeting, "open");
        }
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
        if !self.greeting.is_empty() {
            return Poll::Ready(Next::Bytes(std::mem::take(&mut self.greeting).into()));
        }
        let now = Instant::now();
        loop {
            if let Some(bytes) = self.write_queue() {
                self.heartbeat.spoke(now);
                return Poll::Ready(Next::Bytes(bytes));
            }
            if self.over {
                return Poll::Ready(Next::End);
            }
            if self.see_log || self.is_session_due(now) {
                return Poll::Ready(Next::Ask);
            }
            match self.source.poll_take(cx, &mut self.queue) {
                Poll::Ready(Taken::Events) => {}
                Poll::Ready(Taken::SeeLog) => self.see_log = true,
                Poll::Ready(Taken::End) => self.over = true,
                Poll::Pending => return self.heartbeat.poll(cx, now).map(Next::Bytes),
            }
        }
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
        now - self.touched >= self.present.endpoint.options.stream_heartbeat
    }

    /// Keeps the session from expiring while somebody is connected; one that is over ends the stream.
    async fn keep_session(&mut self) {
        self.touched = Instant::now();
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
                    .extend(replayed.map(|Event { id, data }| (id, data)));
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

    /// Writes some of what is queued; what was sent already is left out.
    fn write_queue(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < WRITE_SIZE {
            let Some((id, data)) = self.queue.pop_front() else {
                break;
            };
            if id.sequence > self.last.sequence {
                self.last = id;
                let id = id.to_string();
                sse::Event::message(&data).with_id(&id).write(&mut out);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }
}

impl Source {
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        queue: &mut VecDeque<(EventId, Bytes)>,
    ) -> Poll<Taken> {
        match self {
            Self::Feed(attached) => attached.poll_take(cx, queue),
            Self::Log(look) => {
                ready!(look.as_mut().poll(cx));
                look.as_mut().reset(Instant::now() + POLL);
                Poll::Ready(Taken::SeeLog)
            }
        }
    }
}

/// A reader as the body of a response.
#[expect(
    clippy::large_enum_variant,
    reason = "the body boxes all of it, and it nearly always reads"
)]
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
