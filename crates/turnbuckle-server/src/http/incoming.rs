//! Reading what clients post.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use ::http::{Response, StatusCode};
use bytes::{Buf, Bytes, BytesMut};

use super::{body::Body, endpoint::Endpoint, refusal};

/// Reads a whole body, as long as it is not too long and does not take too long.
pub(super) async fn read<B: http_body::Body>(
    endpoint: &Endpoint,
    body: B,
) -> Result<Bytes, Response<Body>> {
    let limit = endpoint.options.body_limit;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut collected = pin!(collect(body, limit, &endpoint.half_sent));
    // A body that came along with its head needs no timer.
    if let Poll::Ready(bytes) = poll_fn(|cx| Poll::Ready(collected.as_mut().poll(cx))).await {
        return bytes;
    }
    match tokio::time::timeout(endpoint.options.body_timeout, collected).await {
        Ok(bytes) => bytes,
        Err(_) => Err(refusal::plain(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long to arrive",
        )),
    }
}

async fn collect<B: http_body::Body>(
    body: B,
    limit: usize,
    half_sent: &HalfSent,
) -> Result<Bytes, Response<Body>> {
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
    use std::{collections::VecDeque, convert::Infallible, task::Context};

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
            let mut first = pin!(collect(Pieces::of(4), 1000, &half_sent));
            assert!(is_waiting(first.as_mut()));
            let mut second = pin!(collect(Pieces::of(2), 1000, &half_sent));
            let refused = second
                .as_mut()
                .poll(&mut Context::from_waker(std::task::Waker::noop()));
            let Poll::Ready(Err(response)) = refused else {
                panic!("there is no room for it");
            };
            assert_eq!(response.status(), 503);
        }

        assert_eq!(half_sent.held.load(Ordering::Relaxed), 0);
        let mut third = pin!(collect(Pieces::of(5), 1000, &half_sent));
        assert!(is_waiting(third.as_mut()));
    }

    #[test]
    fn a_body_in_one_piece_needs_no_share() {
        let half_sent = HalfSent::new(0);
        let body = http_body_util::Full::new(Bytes::from_static(b"whole"));

        let mut reading = pin!(collect(body, 1000, &half_sent));

        let read = reading
            .as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(read, Poll::Ready(Ok(bytes)) if bytes == "whole"));
    }
}
