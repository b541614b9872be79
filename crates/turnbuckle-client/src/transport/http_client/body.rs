//! Response bodies, and event streams in them.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;
use turnbuckle_protocol::codec::sse::{ParsedEvent, SseDecoder, SseLimits};

use crate::{
    inbound::recorder::ExchangeRecorder,
    transport::http_client::{HttpError, pool::PooledConnection},
};

/// A response body that may be incomplete.
///
/// At its end, the connection returns to the pool. If it is dropped before, the connection is closed.
pub(super) struct ResponseBody {
    body: Incoming,
    connection: Option<PooledConnection>,
}

impl ResponseBody {
    pub(super) fn new(body: Incoming, connection: PooledConnection) -> Self {
        let connection = Some(connection);
        let mut response_body = Self { body, connection };
        response_body.release_at_end();
        response_body
    }

    /// Returns whether the whole body has been read, as far as is known without waiting.
    pub(super) fn is_finished(&self) -> bool {
        self.connection.is_none()
    }

    /// Returns the announced length.
    pub(super) fn announced_bytes(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Reads the whole body, within a limit.
    pub(super) async fn read_all(mut self, limit: usize) -> Result<Bytes, HttpError> {
        if self.announced_bytes() > limit as u64 {
            return Err(HttpError::TooLarge { limit });
        }
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > limit {
            return Err(HttpError::TooLarge { limit });
        }
        if self.is_finished() {
            return Ok(first);
        }
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let mut read_all = BytesMut::from(first);
        let mut next = Some(second);
        while let Some(data) = next {
            if data.len() > limit - read_all.len() {
                return Err(HttpError::TooLarge { limit });
            }
            read_all.extend_from_slice(&data);
            next = self.next().await?;
        }
        Ok(read_all.freeze())
    }

    /// Waits for the next chunk; trailers are ignored. Cancel safe.
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
                    self.release_connection();
                    return Poll::Ready(Ok(None));
                }
                Some(Err(error)) => {
                    return Poll::Ready(Err(HttpError::ConnectionBroken(error.into())));
                }
                Some(Ok(frame)) => frame,
            };
            if let Ok(data) = frame.into_data() {
                self.release_at_end();
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.release_connection();
        }
    }

    fn release_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.release();
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// Maximum time to wait for the end of a finished stream, before its connection is closed.
pub(super) const FINISH_TIMEOUT: Duration = Duration::from_millis(100);

/// The events of a response.
#[derive(Debug)]
pub(crate) struct EventReader {
    body: ResponseBody,
    /// Received bytes that are not decoded yet.
    chunk: Bytes,
    decoder: SseDecoder,
    limit: usize,
    recorder: Option<Box<ExchangeRecorder>>,
}

impl EventReader {
    pub(super) fn new(
        body: ResponseBody,
        limit: usize,
        recorder: Option<Box<ExchangeRecorder>>,
    ) -> Self {
        let limits = SseLimits {
            line: limit.saturating_add(64),
            event: limit,
        };
        Self {
            body,
            chunk: Bytes::new(),
            decoder: SseDecoder::new(limits),
            limit,
            recorder,
        }
    }

    /// Waits for the next event with data; `None` at the end. Cancel safe.
    ///
    /// An event that is too large is reported once; the next call continues after it.
    pub(crate) async fn next(&mut self) -> Result<Option<ParsedEvent>, HttpError> {
        loop {
            if let Some(event) = self.decode()? {
                if let Some(recorder) = &mut self.recorder {
                    recorder.record_event(&event, self.decoder.retry());
                }
                return Ok(Some(event));
            }
            match self.body.next().await? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(None),
            }
        }
    }

    fn decode(&mut self) -> Result<Option<ParsedEvent>, HttpError> {
        let mut rest = &self.chunk[..];
        let decoded = self.decoder.next(&mut rest);
        let used = self.chunk.len() - rest.len();
        self.chunk.advance(used);
        decoded.map_err(|_| HttpError::TooLarge { limit: self.limit })
    }

    /// Returns the id of the last event, if the stream has set one.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        Some(self.decoder.last_event_id()).filter(|id| !id.is_empty())
    }

    /// Returns the suggested delay before reconnecting, unchecked.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// Reads the end of a stream that is no longer needed, so that its connection can be reused.
    ///
    /// Waits only a short time; otherwise the connection is closed.
    pub(crate) async fn finish(mut self) {
        if self.body.is_finished() {
            return;
        }
        // If more data follows, the connection is closed.
        let next = poll_fn(|cx| Poll::Ready(self.body.poll_next(cx))).await;
        if next.is_pending() {
            tokio::spawn(async move {
                // If it arrives in time, the connection returns to the pool.
                let _ = tokio::time::timeout(FINISH_TIMEOUT, self.body.next()).await;
            });
        }
    }
}
