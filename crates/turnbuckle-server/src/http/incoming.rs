//! Reading what clients post.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, ready},
};

use ::http::{Response, StatusCode};
use bytes::{Buf, Bytes, BytesMut};

use super::{Options, body::Body, endpoint::Endpoint, refusal};

/// Reads a whole body, as long as it is not too long and does not take too long.
pub(super) async fn read<B: http_body::Body>(
    endpoint: &Endpoint,
    mut body: Pin<&mut B>,
) -> Result<Bytes, Response<Body>> {
    let limit = endpoint.options.body_limit;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // A body that came along with its head needs no timer, and is not put together.
    let first = poll_fn(|cx| Poll::Ready(poll_data(body.as_mut(), cx))).await;
    match first {
        Poll::Ready(Some(Ok(first))) if body.is_end_stream() => within(limit, first),
        first => Box::pin(read_slowly(endpoint, body, first)).await,
    }
}

async fn read_slowly<B: http_body::Body>(
    endpoint: &Endpoint,
    body: Pin<&mut B>,
    first: Poll<Option<Data>>,
) -> Result<Bytes, Response<Body>> {
    let Options {
        body_limit,
        body_timeout,
        ..
    } = endpoint.options;
    let collected = collect(body, first, body_limit, &endpoint.half_sent);
    match tokio::time::timeout(body_timeout, collected).await {
        Ok(bytes) => bytes,
        Err(_) => Err(refusal::plain(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long to arrive",
        )),
    }
}

async fn collect<B: http_body::Body>(
    mut body: Pin<&mut B>,
    first: Poll<Option<Data>>,
    limit: usize,
    half_sent: &HalfSent,
) -> Result<Bytes, Response<Body>> {
    let first = match first {
        Poll::Ready(first) => first.transpose()?,
        Poll::Pending => next_data(body.as_mut()).await?,
    };
    let Some(first) = first else {
        return Ok(Bytes::new());
    };
    let first = within(limit, first)?;
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut held = half_sent.hold();
    held.grow(first.len())?;
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
        held.grow(data.len())?;
        whole.extend_from_slice(&data);
        next = next_data(body.as_mut()).await?;
    }
    Ok(whole.freeze())
}

/// A piece of a body, or what to say if it broke off.
type Data = Result<Bytes, Response<Body>>;

/// The next piece of data.
async fn next_data<B: http_body::Body>(
    mut body: Pin<&mut B>,
) -> Result<Option<Bytes>, Response<Body>> {
    poll_fn(|cx| poll_data(body.as_mut(), cx)).await.transpose()
}

/// The next piece of data; trailers are left out.
fn poll_data<B: http_body::Body>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Data>> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => {
                if let Ok(mut data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data.copy_to_bytes(data.remaining()))));
                }
            }
            Some(Err(_)) => {
                let refusal = refusal::plain(StatusCode::BAD_REQUEST, "the body broke off");
                return Poll::Ready(Some(Err(refusal)));
            }
        }
    }
}

fn within(limit: usize, data: Bytes) -> Data {
    if data.len() > limit {
        return Err(too_large(limit));
    }
    Ok(data)
}

fn too_large(limit: usize) -> Response<Body> {
    refusal::plain(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a message may have at most {limit} bytes"),
    )
}

/// What all bodies that have come only in part hold together.
pub(super) struct HalfSent {
    held: AtomicUsize,
    most: usize,
}

impl HalfSent {
    pub(super) fn new(most: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            most,
        }
    }

    fn hold(&self) -> Held<'_> {
        Held {
            all: self,
            bytes: 0,
        }
    }
}

/// What one such body holds, until it is whole or given up.
struct Held<'a> {
    all: &'a HalfSent,
    bytes: usize,
}

impl Held<'_> {
    /// Makes room for more of it.
    fn grow(&mut self, bytes: usize) -> Result<(), Response<Body>> {
        self.bytes += bytes;
        let held = self.all.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held <= self.all.most {
            return Ok(());
        }
        Err(refusal::busy(
            None,
            "too many messages are on their way in pieces; try again in a few seconds",
        ))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible, pin::pin};

    use http_body::Frame;

    use super::*;

    /// A body in pieces; when they are used up, the rest is still on its way.
    struct Pieces(VecDeque<Bytes>);

    impl Pieces {
        fn of(count: usize) -> Self {
            Self(
                (0..count)
                    .map(|_| Bytes::from_static(&[b'x'; 100]))
                    .collect(),
            )
        }
    }

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => Poll::Pending,
            }
        }
    }

    fn is_waiting(reading: Pin<&mut impl Future<Output = Result<Bytes, Response<Body>>>>) -> bool {
        reading
            .poll(&mut Context::from_waker(std::task::Waker::noop()))
            .is_pending()
    }

    #[test]
    fn bodies_in_pieces_share_a_budget_and_give_it_back() {
        let half_sent = HalfSent::new(500);
        {
            let body = pin!(Pieces::of(4));
            let mut first = pin!(collect(body, Poll::Pending, 1000, &half_sent));
            assert!(is_waiting(first.as_mut()));
            let body = pin!(Pieces::of(2));
            let mut second = pin!(collect(body, Poll::Pending, 1000, &half_sent));
            let refused = second
                .as_mut()
                .poll(&mut Context::from_waker(std::task::Waker::noop()));
            let Poll::Ready(Err(response)) = refused else {
                panic!("there is no room for it");
            };
            assert_eq!(response.status(), 503);
        }

        assert_eq!(half_sent.held.load(Ordering::Relaxed), 0);
        let body = pin!(Pieces::of(5));
        let mut third = pin!(collect(body, Poll::Pending, 1000, &half_sent));
        assert!(is_waiting(third.as_mut()));
    }

    #[test]
    fn a_body_in_one_piece_needs_no_share() {
        let half_sent = HalfSent::new(0);
        let body = pin!(http_body_util::Full::new(Bytes::from_static(b"whole")));

        let mut reading = pin!(collect(body, Poll::Pending, 1000, &half_sent));

        let read = reading
            .as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(read, Poll::Ready(Ok(bytes)) if bytes == "whole"));
    }
}
