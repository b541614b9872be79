//! The body of a response.

use std::{
    array,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::request::response::{EncodedResponse, SplitBody};

/// The body of a response: empty, one JSON message, or a stream of events.
pub struct ResponseBody {
    kind: BodyKind,
}

enum BodyKind {
    Full(Option<Bytes>),
    Split(array::IntoIter<Bytes, 3>),
    /// Events of a stream that is complete.
    FinishedEvents(Option<Bytes>),
    Sse(Pin<Box<dyn SseBody>>),
}

/// A stream of encoded server-sent events.
pub(super) trait SseBody: Send {
    /// Returns the next bytes, or `None` at the end.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl ResponseBody {
    pub(super) fn empty() -> Self {
        Self {
            kind: BodyKind::Full(None),
        }
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self {
            kind: BodyKind::Full(Some(bytes)),
        }
    }

    pub(super) fn from_encoded(encoded: EncodedResponse) -> Self {
        match encoded {
            EncodedResponse::Contiguous(all) => Self::full(all.into()),
            EncodedResponse::Split(split) => {
                let SplitBody {
                    prefix,
                    shared,
                    suffix,
                } = *split;
                let chunks = [prefix.into(), shared, suffix.into()];
                Self {
                    kind: BodyKind::Split(chunks.into_iter()),
                }
            }
        }
    }

    /// Creates a stream that consists of these events.
    pub(super) fn finished_events(events: Bytes) -> Self {
        Self {
            kind: BodyKind::FinishedEvents(Some(events)),
        }
    }

    /// Returns whether the body is a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, BodyKind::Sse(_) | BodyKind::FinishedEvents(_))
    }

    pub(super) fn from_sse(events: impl SseBody + 'static) -> Self {
        Self {
            kind: BodyKind::Sse(Box::pin(events)),
        }
    }

    /// Ends the body after a time if it is a stream of events.
    pub(super) fn ended_after(self, lifetime: Duration) -> Self {
        match self.kind {
            BodyKind::Sse(events) => Self::from_sse(LimitedSseBody {
                events: Some(events),
                end: Box::pin(sleep(lifetime)),
            }),
            kind => Self { kind },
        }
    }
}

/// A stream of events that ends at a time.
struct LimitedSseBody {
    /// `None` once the time has come.
    events: Option<Pin<Box<dyn SseBody>>>,
    end: Pin<Box<Sleep>>,
}

impl SseBody for LimitedSseBody {
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.events.is_some() && self.end.as_mut().poll(cx).is_ready() {
            self.events = None;
        }
        match &mut self.events {
            Some(events) => events.as_mut().poll_next(cx),
            None => Poll::Ready(None),
        }
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.get_mut().kind {
            BodyKind::Full(bytes) | BodyKind::FinishedEvents(bytes) => Poll::Ready(bytes.take()),
            BodyKind::Split(chunks) => Poll::Ready(chunks.next()),
            BodyKind::Sse(events) => events.as_mut().poll_next(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Full(bytes) | BodyKind::FinishedEvents(bytes) => bytes.is_none(),
            BodyKind::Split(chunks) => chunks.as_slice().is_empty(),
            BodyKind::Sse(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            BodyKind::Split(chunks) => SizeHint::with_exact(
                chunks
                    .as_slice()
                    .iter()
                    .map(|chunk| chunk.len() as u64)
                    .sum(),
            ),
            // The length of a stream is not sent.
            BodyKind::Sse(_) | BodyKind::FinishedEvents(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
