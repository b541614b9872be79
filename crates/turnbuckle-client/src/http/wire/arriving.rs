//! A body as it arrives, and the connection on which it does.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;

use super::{HttpError, pool::Lease};

/// A body of which some may be still to come.
///
/// With its end the connection is free for the next request. Dropped before, it takes the connection along.
pub(super) struct Arriving {
    body: Incoming,
    lease: Option<Lease>,
}

impl Arriving {
    pub(super) fn new(body: Incoming, lease: Lease) -> Self {
        let lease = Some(lease);
        let mut arriving = Self { body, lease };
        arriving.free_at_end();
        arriving
    }

    /// Says whether all of it has been read, as far as that is known without waiting.
    pub(super) fn is_over(&self) -> bool {
        self.lease.is_none()
    }

    /// Returns how many bytes it announces.
    pub(super) fn announced(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Reads all of it, if it is not larger than it may be.
    pub(super) async fn whole(mut self, limit: usize) -> Result<Bytes, HttpError> {
        if self.announced() > limit as u64 {
            return Err(HttpError::TooLarge { limit });
        }
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > limit {
            return Err(HttpError::TooLarge { limit });
        }
        if self.is_over() {
            return Ok(first);
        }
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::from(first);
        let mut next = Some(second);
        while let Some(data) = next {
            if data.len() > limit - whole.len() {
                return Err(HttpError::TooLarge { limit });
            }
            whole.extend_from_slice(&data);
            next = self.next().await?;
        }
        Ok(whole.freeze())
    }

    /// Waits for the next data; trailers are nothing to us. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, HttpError>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => {
                    self.free();
                    return Poll::Ready(Ok(None));
                }
                Some(Err(problem)) => return Poll::Ready(Err(HttpError::Broken(problem.into()))),
                Some(Ok(frame)) => frame,
            };
            if let Ok(data) = frame.into_data() {
                self.free_at_end();
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    fn free_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.free();
        }
    }

    fn free(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl fmt::Debug for Arriving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arriving").finish_non_exhaustive()
    }
}
