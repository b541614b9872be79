//! Bodies: the one that is read, and the one that is sent.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use ::http::{Response, StatusCode};
use bytes::{Buf, Bytes, BytesMut};
use http_body::{Frame, SizeHint};

use super::refusal;

/// The body of an answer: nothing, one JSON message, or a stream of events.
pub struct Body {
    kind: Kind,
}

enum Kind {
    Full(Option<Bytes>),
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

    pub(super) fn events(events: impl Events + 'static) -> Self {
        Self {
            kind: Kind::Events(Box::pin(events)),
        }
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
            Kind::Events(events) => events.as_mut().poll_next(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// Reads a whole body, as long as it is not too long and does not take too long.
pub(super) async fn read<B: http_body::Body>(
    body: B,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, Response<Body>> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut collected = pin!(collect(body, limit));
    // A body that came along with its head needs no timer.
    if let Poll::Ready(bytes) = poll_fn(|cx| Poll::Ready(collected.as_mut().poll(cx))).await {
        return bytes;
    }
    match tokio::time::timeout(patience, collected).await {
        Ok(bytes) => bytes,
        Err(_) => Err(refusal::plain(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long to arrive",
        )),
    }
}

async fn collect<B: http_body::Body>(body: B, limit: usize) -> Result<Bytes, Response<Body>> {
    let mut body = pin!(body);
    let Some(first) = next_data(body.as_mut()).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = next_data(body.as_mut()).await? else {
        return Ok(first);
    };
    // What is announced is taken at its word only as far as it has come.
    let announced = body.size_hint().lower().min(64 * 1024) as usize;
    let mut whole = BytesMut::with_capacity(first.len() + second.len() + announced);
    whole.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(data) = next {
        if whole.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&data);
        next = next_data(body.as_mut()).await?;
    }
    Ok(whole.freeze())
}

/// The next piece of data; trailers are left out.
async fn next_data<B: http_body::Body>(
    mut body: Pin<&mut B>,
) -> Result<Option<Bytes>, Response<Body>> {
    loop {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(mut data) = frame.into_data() {
                    return Ok(Some(data.copy_to_bytes(data.remaining())));
                }
            }
            Some(Err(_)) => {
                return Err(refusal::plain(
                    StatusCode::BAD_REQUEST,
                    "the body broke off",
                ));
            }
        }
    }
}

fn too_large(limit: usize) -> Response<Body> {
    refusal::plain(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a message may have at most {limit} bytes"),
    )
}
