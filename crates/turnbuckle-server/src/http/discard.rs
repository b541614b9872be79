//! The rest of a request that nobody reads.

use std::{future::poll_fn, pin::pin, time::Duration};

use ::http::{
    HeaderValue, Response, Version,
    header::{CONNECTION, EXPECT},
    request::Parts,
};
use bytes::Buf;
use http_body::Body as _;
use tokio::time::timeout;

use super::body::Body;

/// How many bytes are taken in for nothing, and for how long.
const MOST: u64 = 64 * 1024;
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers a request whose body was not read.
///
/// Many clients send the body behind the head, and it is not there yet when a refusal is ready. HTTP/1.1 cannot leave it out:
/// the connection would end behind the answer, under the next request of a client that was refused as it expected to be.
/// So what comes soon and is little is taken in first; where there is more, the answer says that the connection ends.
pub(super) async fn answered<B: http_body::Body>(
    mut response: Response<Body>,
    parts: &Parts,
    body: B,
) -> Response<Body> {
    // Whoever asks before sending learns by the answer that nothing is to be sent.
    let waits = parts.headers.contains_key(EXPECT);
    let is_over = body.is_end_stream() || !waits && is_taken_in(body).await;
    if !is_over && parts.version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

/// Says whether a body came to its end.
async fn is_taken_in<B: http_body::Body>(body: B) -> bool {
    let mut body = pin!(body);
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
        }
        false
    };
    timeout(PATIENCE, all).await.unwrap_or(false)
}
