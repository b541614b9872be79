//! Request bodies that were not read to their end: they are drained, or the connection closes.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use ::http::{
    HeaderMap, HeaderValue, Response, StatusCode, Version,
    header::{CONNECTION, EXPECT},
};
use bytes::Buf;
use http_body::{Body as _, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::timeout;

use crate::http::{body::ResponseBody, connection::ConnectionHandle};

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
