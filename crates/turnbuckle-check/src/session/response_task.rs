//! Reads an HTTP response in a background task.

use std::time::Duration;

use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::{
    engine::{outcome::NotPassed, transcript::Transcript},
    wire::{
        WireEvent,
        http::{RawHttpRequest, RawHttpResponse, StreamEvent},
    },
};

/// The idle time after which a stream is no longer read.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for the rest of a stream after its response.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of attempts to resume a stream that ended before its response, and the maximum delay.
const MAX_RESUMPTIONS: usize = 5;
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3);

/// The idle timeout of the GET stream.
const LISTEN_IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A running HTTP request. Dropping it closes the connection.
pub(crate) struct ResponseTask {
    /// The entry of the request.
    pub(super) sent: usize,
    events: mpsc::UnboundedReceiver<WireEvent>,
    reading: JoinHandle<()>,
}

impl ResponseTask {
    /// Sends a request and reads the response.
    pub(super) fn start(raw_request: RawHttpRequest, transcript: Transcript) -> Self {
        Self::read(
            raw_request,
            transcript,
            IDLE_TIMEOUT,
            StreamLossPolicy::GiveUp,
        )
    }

    /// Like [`start`](Self::start), but resumes a stream that ends before the response, if it has
    /// event ids.
    pub(super) fn resumable(raw_request: RawHttpRequest, transcript: Transcript) -> Self {
        Self::read(
            raw_request,
            transcript,
            IDLE_TIMEOUT,
            StreamLossPolicy::Resume,
        )
    }

    /// Reads until the task is dropped.
    pub(super) fn listen(raw_request: RawHttpRequest, transcript: Transcript) -> Self {
        Self::read(
            raw_request,
            transcript,
            LISTEN_IDLE_TIMEOUT,
            StreamLossPolicy::GiveUp,
        )
    }

    fn read(
        mut raw_request: RawHttpRequest,
        transcript: Transcript,
        response_timeout: Duration,
        on_loss: StreamLossPolicy,
    ) -> Self {
        let (_, sent) = raw_request.record();
        let (sender, events) = mpsc::unbounded_channel();
        let reader = ResponseReader {
            transcript,
            events: sender,
            response_timeout,
            on_loss,
        };
        let reading = tokio::spawn(reader.run(raw_request));
        Self {
            sent,
            events,
            reading,
        }
    }

    /// Returns the next event; `None` after the timeout.
    pub(super) async fn next(&mut self, response_timeout: Duration) -> Option<WireEvent> {
        match timeout(response_timeout, self.events.recv()).await {
            Ok(events) => Some(events.unwrap_or(WireEvent::End(None))),
            Err(_) => None,
        }
    }

    /// Reads the rest.
    pub(super) async fn finish(mut self) {
        let _ = timeout(FINISH_TIMEOUT, async {
            while self.events.recv().await.is_some() {}
        })
        .await;
    }
}

impl Drop for ResponseTask {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Reads a response and emits events.
struct ResponseReader {
    transcript: Transcript,
    events: mpsc::UnboundedSender<WireEvent>,
    response_timeout: Duration,
    on_loss: StreamLossPolicy,
}

/// The reaction to a stream that ends before the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamLossPolicy {
    GiveUp,
    Resume,
}

/// The end of a stream.
enum StreamEnd {
    /// The stream is complete.
    Done(Option<String>),
    /// The response is missing: resume after this event id and delay.
    Interrupted(String, Duration),
}

impl ResponseReader {
    async fn run(self, raw_request: RawHttpRequest) {
        if let Ok(why) = self.read_all(raw_request).await {
            let _ = self.emit(WireEvent::End(why));
        }
    }

    /// Reads and resumes until the end; returns the error, if any.
    async fn read_all(
        &self,
        raw_request: RawHttpRequest,
    ) -> Result<Option<String>, ReceiverClosed> {
        let mut ended = self.read(raw_request.clone(), true).await?;
        for _ in 0..MAX_RESUMPTIONS {
            let StreamEnd::Interrupted(last, wait) = ended else {
                break;
            };
            tokio::time::sleep(wait.min(MAX_RETRY_DELAY)).await;
            ended = self.read(raw_request.clone().resume(&last), false).await?;
        }
        Ok(match ended {
            StreamEnd::Done(why) => why,
            StreamEnd::Interrupted(..) => None,
        })
    }

    /// Reads one response to its end.
    async fn read(
        &self,
        raw_request: RawHttpRequest,
        first: bool,
    ) -> Result<StreamEnd, ReceiverClosed> {
        // The caller limits the time for the response.
        let mut reply = match raw_request.send_within(self.response_timeout).await {
            Ok(reply) => reply,
            Err(
                NotPassed::Violation { observed: why, .. }
                | NotPassed::NotTested(why)
                | NotPassed::NotApplicable(why),
            ) => return Ok(StreamEnd::Done(Some(why))),
        };
        if first {
            self.emit(WireEvent::Head(reply.status, reply.received))?;
        }
        if reply.is_stream() {
            self.events(reply).await
        } else if !first {
            // A stream that cannot be resumed has ended.
            Ok(StreamEnd::Done(None))
        } else {
            let text = reply.text(self.response_timeout).await;
            if !text.is_empty() {
                self.emit(WireEvent::Message(reply.received))?;
            }
            Ok(StreamEnd::Done(reply.interrupted().map(str::to_owned)))
        }
    }

    async fn events(&self, mut reply: RawHttpResponse) -> Result<StreamEnd, ReceiverClosed> {
        let mut last = String::new();
        let mut has_response = false;
        let why = loop {
            match reply.event(self.response_timeout).await {
                StreamEvent::Message(number) => {
                    let entry = self.transcript.entry(number);
                    last = entry.event.as_ref().map_or(last, |event| event.id.clone());
                    let message = entry.json().unwrap_or_default();
                    has_response |= message.get("method").is_none() && message.get("id").is_some();
                    // An event without data only sets the id to resume from.
                    if !entry.text.is_empty() {
                        self.emit(WireEvent::Message(number))?;
                    }
                }
                StreamEvent::Timeout | StreamEvent::End => break None,
                StreamEvent::Interrupted(why) => break Some(why),
            }
        };
        let resumes = self.on_loss == StreamLossPolicy::Resume && !has_response && !last.is_empty();
        Ok(if resumes {
            StreamEnd::Interrupted(last, reply.retry().unwrap_or_default())
        } else {
            StreamEnd::Done(why)
        })
    }

    fn emit(&self, events: WireEvent) -> Result<(), ReceiverClosed> {
        self.events.send(events).map_err(|_| ReceiverClosed)
    }
}

/// The receiver was dropped.
struct ReceiverClosed;
