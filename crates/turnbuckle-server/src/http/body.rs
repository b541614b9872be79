//! The body of an answer.

use std::{
    array,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::written::{Around, Written};

/// The body of an answer: nothing, one JSON message, or a stream of events.
pub struct Body {
    kind: Kind,
}

enum Kind {
    Full(Option<Bytes>),
    Pieces(array::IntoIter<Bytes, 3>),
    Events(Pin<Box<dyn Events>>),
}

/// Events that come one after the other.
pub(super) trait Events: Send {
    /// Returns the next bytes, or `None` at the end.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl Body {
    pub(super) fn empty() -> Self {
        Self {
            kind: Kind::Full(None),
        }
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self {
            kind: Kind::Full(Some(bytes)),
        }
    }

    pub(super) fn written(written: Written) -> Self {
        match written {
            Written::Whole(all) => Self::full(all.into()),
            Written::Around(around) => {
                let Around {
                    before,
                    shared,
                    after,
                } = *around;
                let pieces = [before.into(), shared, after.into()];
                Self {
                    kind: Kind::Pieces(pieces.into_iter()),
                }
            }
        }
    }

    /// Returns whether it goes on for as long as there are events.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Events(_))
    }

    pub(super) fn events(events: impl Events + 'static) -> Self {
        Self {
            kind: Kind::Events(Box::pin(events)),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.get_mut().kind {
            Kind::Full(bytes) => Poll::Ready(bytes.take()),
            Kind::Pieces(pieces) => Poll::Ready(pieces.next()),
            Kind::Events(events) => events.as_mut().poll_next(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Pieces(pieces) => pieces.as_slice().is_empty(),
            Kind::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Pieces(pieces) => SizeHint::with_exact(
                pieces
                    .as_slice()
                    .iter()
                    .map(|piece| piece.len() as u64)
                    .sum(),
            ),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
