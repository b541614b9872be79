//! Answers to requests whose body was not read to its end.

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

use super::{body::Body, link::Link};

/// How many bytes are taken in for nothing, and for how long.
const MOST: u64 = 64 * 1024;
const PATIENCE: Duration = Duration::from_millis(500);

pin_project! {
    /// The body of a request, and whether it has come to its end.
    pub(super) struct Tracked<B> {
        #[pin]
        body: B,
        ended: bool,
    }
}

impl<B: http_body::Body> Tracked<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, ended: false }
    }

    /// Returns whether nothing more can be read.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

impl<B: http_body::Body> http_body::Body for Tracked<B> {
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
        self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What matters about a request whose body was not read to its end.
pub(super) struct Unread {
    version: Version,
    /// Whether the client waits with the body until it is asked for it.
    expects: bool,
    link: Link,
}

impl Unread {
    pub(super) fn new(version: Version, headers: &HeaderMap, link: &Link) -> Self {
        Self {
            version,
            expects: headers.contains_key(EXPECT),
            link: link.clone(),
        }
    }
}

/// Completes the answer to a request whose body was not read to its end.
///
/// Many clients send the body behind the head, and it is not there yet when a refusal is ready. HTTP/1.1 cannot leave it out:
/// the connection would end behind the answer, under the next request of a client that was refused as it expected to be.
/// So what comes soon and is little is taken in first. Where there is more, the answer says that the connection ends, and
/// it [lingers](super::linger) so that a client that is still sending reads the answer.
///
/// HTTP/2 ends the stream alone, and clients read what was sent on it.
pub(super) async fn answered<B: http_body::Body>(
    mut response: Response<Body>,
    unread: Unread,
    body: Pin<&mut Tracked<B>>,
) -> Response<Body> {
    if unread.version >= Version::HTTP_2 || response.body().is_stream() {
        return response;
    }
    // What is too long or too slow is not waited for, nor what the client sends only if it is asked to.
    let is_hopeless = matches!(
        response.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    );
    if unread.expects || is_hopeless || !is_taken_in(body).await {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        unread.link.linger();
    }
    response
}

/// Says whether a body came to its end.
async fn is_taken_in<B: http_body::Body>(mut body: Pin<&mut Tracked<B>>) -> bool {
    let all = async {
        let mut seen = body.size_hint().lower();
        while seen <= MOST {
            match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => {
                    let more = frame.data_ref().map_or(0, Buf::remaining);
                    seen = seen.saturating_add(more as u64);
                }
            }
            if body.is_over() {
                return true;
            }
        }
        false
    };
    timeout(PATIENCE, all).await.unwrap_or(false)
}
