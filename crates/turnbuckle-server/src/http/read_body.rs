//! Request bodies: reading them within limits, and draining those that were not read.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use ::http::{
    HeaderMap, HeaderValue, Response, StatusCode, Version,
    header::{CONNECTION, EXPECT},
};
use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::timeout;

use crate::http::{
    HttpOptions, body::ResponseBody, connection::ConnectionHandle, endpoint::Endpoint, responses,
};

/// Reads a whole body within the limits on size and time.
pub(super) async fn read_body<B: http_body::Body>(
    endpoint: &Endpoint,
    mut body: Pin<&mut B>,
) -> Result<Bytes, Response<ResponseBody>> {
    let limit = endpoint.options.body_limit;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // A body that arrived together with its head needs no timer and no copy.
    let first = poll_fn(|cx| Poll::Ready(poll_chunk(body.as_mut(), cx))).await;
    match first {
        Poll::Ready(Some(Ok(first))) if body.is_end_stream() => check_limit(limit, first),
        first => Box::pin(read_with_timeout(endpoint, body, first)).await,
    }
}

async fn read_with_timeout<B: http_body::Body>(
    endpoint: &Endpoint,
    body: Pin<&mut B>,
    first: Poll<Option<BodyChunk>>,
) -> Result<Bytes, Response<ResponseBody>> {
    let HttpOptions {
        body_limit,
        body_timeout,
        ..
    } = endpoint.options;
    let collected = collect(body, first, body_limit, &endpoint.partial_bodies);
    match tokio::time::timeout(body_timeout, collected).await {
        Ok(bytes) => bytes,
        Err(_) => Err(responses::invalid_request(
            StatusCode::REQUEST_TIMEOUT,
            "the request body was not received in time",
        )),
    }
}

async fn collect<B: http_body::Body>(
    mut body: Pin<&mut B>,
    first: Poll<Option<BodyChunk>>,
    limit: usize,
    partial_bodies: &PartialBodyBudget,
) -> Result<Bytes, Response<ResponseBody>> {
    let first = match first {
        Poll::Ready(first) => first.transpose()?,
        Poll::Pending => next_chunk(body.as_mut()).await?,
    };
    let Some(first) = first else {
        return Ok(Bytes::new());
    };
    let first = check_limit(limit, first)?;
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut share = partial_bodies.share();
    share.reserve(first.len())?;
    let Some(second) = next_chunk(body.as_mut()).await? else {
        return Ok(first);
    };
    // Allocate at most 64 KiB for the announced length; the client may not send that much.
    let announced = body.size_hint().lower().min(64 * 1024) as usize;
    let mut buffer = BytesMut::with_capacity(first.len() + second.len() + announced);
    buffer.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(data) = next {
        if buffer.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        share.reserve(data.len())?;
        buffer.extend_from_slice(&data);
        next = next_chunk(body.as_mut()).await?;
    }
    Ok(buffer.freeze())
}

/// A chunk of a body, or the error response if the body ended early.
type BodyChunk = Result<Bytes, Response<ResponseBody>>;

/// Returns the next chunk.
async fn next_chunk<B: http_body::Body>(
    mut body: Pin<&mut B>,
) -> Result<Option<Bytes>, Response<ResponseBody>> {
    poll_fn(|cx| poll_chunk(body.as_mut(), cx))
        .await
        .transpose()
}

/// Returns the next chunk; trailers are skipped.
fn poll_chunk<B: http_body::Body>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<BodyChunk>> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => {
                if let Ok(mut data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data.copy_to_bytes(data.remaining()))));
                }
            }
            Some(Err(_)) => {
                let response = responses::invalid_request(
                    StatusCode::BAD_REQUEST,
                    "the request body ended early",
                );
                return Poll::Ready(Some(Err(response)));
            }
        }
    }
}

fn check_limit(limit: usize, data: Bytes) -> BodyChunk {
    if data.len() > limit {
        return Err(too_large(limit));
    }
    Ok(data)
}

fn too_large(limit: usize) -> Response<ResponseBody> {
    responses::invalid_request(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body exceeds {limit} bytes"),
    )
}

/// The bytes that all partially received bodies may occupy together.
pub(super) struct PartialBodyBudget {
    used: AtomicUsize,
    max_bytes: usize,
}

impl PartialBodyBudget {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max_bytes,
        }
    }

    fn share(&self) -> BudgetShare<'_> {
        BudgetShare {
            budget: self,
            bytes: 0,
        }
    }
}

/// The bytes that one partially received body occupies. They are returned on drop.
struct BudgetShare<'a> {
    budget: &'a PartialBodyBudget,
    bytes: usize,
}

impl BudgetShare<'_> {
    /// Reserves bytes for more of the body, or returns an error response if the budget is exhausted.
    fn reserve(&mut self, bytes: usize) -> Result<(), Response<ResponseBody>> {
        self.bytes += bytes;
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used <= self.budget.max_bytes {
            return Ok(());
        }
        Err(responses::service_unavailable(
            None,
            "too many partially received bodies; retry in a few seconds",
        ))
    }
}

impl Drop for BudgetShare<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The number of bytes of an unread body that are drained.
const MAX_DRAIN_BYTES: u64 = 64 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

pin_project! {
    /// The body of a request, with a flag for its end.
    pub(super) struct TrackedBody<B> {
        #[pin]
        body: B,
        ended: bool,
    }
}

impl<B: http_body::Body> TrackedBody<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, ended: false }
    }

    /// Returns whether the body was read to its end.
    pub(super) fn is_finished(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

impl<B: http_body::Body> http_body::Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        *this.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.is_finished()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The facts about a request that decide how to handle its unread body.
pub(super) struct UnreadBody {
    version: Version,
    /// Set if the client sent `Expect`, so waits for `100 Continue` before it sends the body.
    expects_continue: bool,
    connection: ConnectionHandle,
}

impl UnreadBody {
    pub(super) fn new(
        version: Version,
        headers: &HeaderMap,
        connection: &ConnectionHandle,
    ) -> Self {
        Self {
            version,
            expects_continue: headers.contains_key(EXPECT),
            connection: connection.clone(),
        }
    }
}

/// Completes the response to a request if its body was not read to its end.
///
/// Many clients send the body after the head, so it has not arrived when an early error response is ready. In HTTP/1.1 the
/// body cannot be skipped: the connection would close after the response, and a client that reuses the connection
/// would lose its next request. So a body of up to 64 KiB that arrives within 500 ms is drained first. Otherwise
/// the response has `Connection: close`, and the connection [lingers](super::connection) so that a client that is still
/// sending can read the response.
///
/// HTTP/2 resets only the stream, and clients still read the response.
pub(super) async fn respond_after_drain<B: http_body::Body>(
    mut response: Response<ResponseBody>,
    unread: UnreadBody,
    body: Pin<&mut TrackedBody<B>>,
) -> Response<ResponseBody> {
    if unread.version >= Version::HTTP_2 || response.body().is_stream() {
        return response;
    }
    // Do not wait for bodies that were already too long or too slow, or that the client sends only after `100 Continue`.
    let is_pointless = matches!(
        response.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    );
    if unread.expects_continue || is_pointless || !drain(body).await {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        unread.connection.request_linger();
    }
    response
}

/// Reads and discards a body. Returns whether its end was reached.
async fn drain<B: http_body::Body>(mut body: Pin<&mut TrackedBody<B>>) -> bool {
    let all = async {
        let mut seen = body.size_hint().lower();
        while seen <= MAX_DRAIN_BYTES {
            match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    let more = frame.data_ref().map_or(0, Buf::remaining);
                    seen = seen.saturating_add(more as u64);
                }
            }
            if body.is_finished() {
                return true;
            }
        }
        false
    };
    timeout(DRAIN_TIMEOUT, all).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible, pin::pin};

    use http_body::Frame;

    use super::*;

    /// A body of several chunks that never ends.
    struct PendingChunks(VecDeque<Bytes>);

    impl PendingChunks {
        fn new(count: usize) -> Self {
            Self(
                (0..count)
                    .map(|_| Bytes::from_static(&[b'x'; 100]))
                    .collect(),
            )
        }
    }

    impl http_body::Body for PendingChunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None => Poll::Pending,
            }
        }
    }

    fn is_pending(
        reading: Pin<&mut impl Future<Output = Result<Bytes, Response<ResponseBody>>>>,
    ) -> bool {
        reading
            .poll(&mut Context::from_waker(std::task::Waker::noop()))
            .is_pending()
    }

    #[test]
    fn partial_bodies_share_a_budget_and_return_it() {
        let partial_bodies = PartialBodyBudget::new(500);
        {
            let body = pin!(PendingChunks::new(4));
            let mut first = pin!(collect(body, Poll::Pending, 1000, &partial_bodies));
            assert!(is_pending(first.as_mut()));
            let body = pin!(PendingChunks::new(2));
            let mut second = pin!(collect(body, Poll::Pending, 1000, &partial_bodies));
            let rejected = second
                .as_mut()
                .poll(&mut Context::from_waker(std::task::Waker::noop()));
            let Poll::Ready(Err(response)) = rejected else {
                panic!("the budget is exhausted");
            };
            assert_eq!(response.status(), 503);
        }

        assert_eq!(partial_bodies.used.load(Ordering::Relaxed), 0);
        let body = pin!(PendingChunks::new(5));
        let mut third = pin!(collect(body, Poll::Pending, 1000, &partial_bodies));
        assert!(is_pending(third.as_mut()));
    }

    #[test]
    fn a_body_in_one_chunk_uses_no_budget() {
        let partial_bodies = PartialBodyBudget::new(0);
        let body = pin!(http_body_util::Full::new(Bytes::from_static(b"whole")));

        let mut reading = pin!(collect(body, Poll::Pending, 1000, &partial_bodies));

        let outcome = reading
            .as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(outcome, Poll::Ready(Ok(bytes)) if bytes == "whole"));
    }
}
