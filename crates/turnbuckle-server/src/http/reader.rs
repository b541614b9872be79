//! A connection that reads a resumable stream.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use turnbuckle_protocol::codec::sse;
use turnbuckle_store::{Event, EventId};

use super::{
    body::Events,
    endpoint::Permit,
    feed::{Attached, Taken},
    presence::Present,
    stateless::WRITE_SIZE,
};

/// How long a client is asked to wait before it comes back.
const RETRY: u64 = 1_000;

/// How often to look at the log of a stream that another process writes.
const POLL: Duration = Duration::from_secs(1);

/// What a connection has read of a stream, and what it reads next.
pub(super) struct Reader {
    present: Present,
    /// `None` for a stream that nobody in this process writes to.
    attached: Option<Attached>,
    /// The last event that was sent.
    last: EventId,
    greeting: Vec<u8>,
    queue: VecDeque<(EventId, Bytes)>,
    /// Whether the log may hold what is not in the queue.
    see_log: bool,
    over: bool,
    /// When the session was last kept from expiring.
    touched: Instant,
    /// Counts a stream that no request stands for.
    _permit: Option<Permit>,
}

impl Reader {
    /// Reads what follows `last`.
    pub(super) fn new(present: Present, attached: Option<Attached>, last: EventId) -> Self {
        Self {
            present,
            attached,
            last,
            greeting: Vec::new(),
            queue: VecDeque::new(),
            see_log: true,
            over: false,
            touched: Instant::now(),
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
        ReaderEvents {
            next: Some(Box::pin(self.next())),
        }
    }

    /// Waits for the next bytes; `None` is the end.
    async fn next(mut self) -> (Option<Bytes>, Self) {
        if !self.greeting.is_empty() {
            return (Some(std::mem::take(&mut self.greeting).into()), self);
        }
        loop {
            self.keep_session().await;
            if let Some(bytes) = self.write_queue() {
                return (Some(bytes), self);
            }
            if self.over {
                return (None, self);
            }
            if self.see_log {
                self.read_log().await;
                continue;
            }
            match self.attached.as_ref().map(Attached::take) {
                Some(Taken::Events(events)) => {
                    self.queue = events;
                    continue;
                }
                Some(Taken::SeeLog) => {
                    self.see_log = true;
                    continue;
                }
                Some(Taken::End) => {
                    self.over = true;
                    continue;
                }
                Some(Taken::Nothing) | None => {}
            }
            if !self.wait().await {
                return (Some(Bytes::from_static(b": alive\n\n")), self);
            }
        }
    }

    /// Waits until there may be something to read; says whether that was before the next heartbeat.
    async fn wait(&mut self) -> bool {
        let heartbeat = self.present.endpoint.options.stream_heartbeat;
        match &self.attached {
            Some(attached) => tokio::select! {
                () = attached.changed() => true,
                () = sleep(heartbeat) => false,
            },
            None => {
                sleep(POLL.min(heartbeat)).await;
                self.see_log = true;
                heartbeat > POLL
            }
        }
    }

    /// Keeps the session from expiring while somebody is connected; one that is over ends the stream.
    async fn keep_session(&mut self) {
        let endpoint = &self.present.endpoint;
        if self.touched.elapsed() < endpoint.options.stream_heartbeat {
            return;
        }
        self.touched = Instant::now();
        let sessions = &endpoint.server.store_ref().sessions;
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
                self.over |= replay.finished && self.attached.is_none();
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
                sse::Event::message(&data)
                    .with_id(&id.to_string())
                    .write(&mut out);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }
}

/// A reader as the body of a response.
struct ReaderEvents {
    next: Option<Reading>,
}

/// A reader that waits for its next bytes.
type Reading = Pin<Box<dyn Future<Output = (Option<Bytes>, Reader)> + Send>>;

impl Events for ReaderEvents {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let Poll::Ready((bytes, reader)) = next.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.next = bytes.is_some().then(|| Box::pin(reader.next()) as _);
        Poll::Ready(bytes)
    }
}
