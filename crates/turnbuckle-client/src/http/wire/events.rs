//! A response that is read event by event.

use std::{future::poll_fn, task::Poll, time::Duration};

use bytes::{Buf, Bytes};
use turnbuckle_protocol::codec::sse::{Decoder, Limits, Received};

use super::{HttpError, arriving::Arriving};

/// What the end of a finished stream may still cost before its connection is given up.
pub(super) const REST: Duration = Duration::from_millis(100);

/// The events of a response.
#[derive(Debug)]
pub(crate) struct Events {
    body: Arriving,
    /// What has arrived and is not decoded yet.
    chunk: Bytes,
    decoder: Decoder,
    limit: usize,
}

impl Events {
    pub(super) fn new(body: Arriving, limit: usize) -> Self {
        let limits = Limits {
            line: limit.saturating_add(64),
            event: limit,
        };
        Self {
            body,
            chunk: Bytes::new(),
            decoder: Decoder::new(limits),
            limit,
        }
    }

    /// Waits for the next event with data; `None` at the end. Nothing is lost if the future is dropped.
    ///
    /// An event that is too large is reported once, and the next call goes on behind it.
    pub(crate) async fn next(&mut self) -> Result<Option<Received>, HttpError> {
        loop {
            if let Some(event) = self.decode()? {
                return Ok(Some(event));
            }
            match self.body.next().await? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(None),
            }
        }
    }

    fn decode(&mut self) -> Result<Option<Received>, HttpError> {
        let mut rest = &self.chunk[..];
        let decoded = self.decoder.next(&mut rest);
        let used = self.chunk.len() - rest.len();
        self.chunk.advance(used);
        decoded.map_err(|_| HttpError::TooLarge { limit: self.limit })
    }

    /// Returns the id of the last event, if the stream has named any.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        Some(self.decoder.last_event_id()).filter(|id| !id.is_empty())
    }

    /// Returns how long the stream asked to wait before coming back; anything from nothing to ages.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// Reads the end of a stream that has given what was wanted, so that its connection can be used again.
    ///
    /// Only an end that is there, or as good as there, is worth it; otherwise the connection is closed.
    pub(crate) async fn finish(mut self) {
        if self.body.is_over() {
            return;
        }
        // If it goes on instead, it is not worth waiting for.
        let next = poll_fn(|cx| Poll::Ready(self.body.poll_next(cx))).await;
        if next.is_pending() {
            tokio::spawn(async move {
                // Whether it came in time shows in the pool only.
                let _ = tokio::time::timeout(REST, self.body.next()).await;
            });
        }
    }
}
