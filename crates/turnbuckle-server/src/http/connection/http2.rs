//! Serves one connection in HTTP/2 or HTTP/1.1, detected by its first bytes.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use ::http::{Request, Version};
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep},
};

use super::{
    CLOSING, MIN_CHECK_INTERVAL, OpenRequestGuard, REQUEST, header_deadline::HeaderDeadline,
    lingering_close::LingeringClose, write_timeout::WriteTimeout,
};
use crate::{
    http::{
        body::ResponseBody,
        connection::{ConnectionActivity, ConnectionHandle, RequestAdmission},
        endpoint::Endpoint,
    },
    sync::GatedFuture,
};

/// Maximum size of a request header in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Interval and timeout of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Time that an idle connection gets to close after a graceful shutdown was started.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves a connection until it ends, or until the endpoint shuts down and the running requests have their responses.
pub(crate) async fn serve_connection<I>(
    io: I,
    peer: Option<SocketAddr>,
    endpoint: Arc<Endpoint>,
    activity: Arc<ConnectionActivity>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (first, next) = (
        endpoint.options.header_timeout,
        endpoint.options.keep_alive_timeout,
    );
    let write_timeout = endpoint.options.write_timeout;
    let has_http2_request = Arc::new(AtomicBool::new(false));
    let sees_http2_request = has_http2_request.clone();
    let io = WriteTimeout::new(io, activity.clone(), write_timeout);
    let io = TokioIo::new(LingeringClose::new(io, endpoint.clone(), activity.clone()));
    let mut header_deadline = HeaderDeadline::new(activity.clone(), first, next);
    let handle = ConnectionHandle::new(peer, activity.clone());
    let (closing_endpoint, own_handle) = (endpoint.clone(), handle.clone());
    let mut timeouts = ConnectionTimeouts {
        streams: Arc::new(Http2Streams::new(activity)),
        keep_alive: next,
        write: write_timeout,
        is_closing: false,
    };
    let streams = timeouts.streams.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let is_http2 = request.version() == Version::HTTP_2;
        let (guard, admission) = if is_http2 {
            sees_http2_request.store(true, Ordering::Relaxed);
            match Http2StreamGuard::new(&streams) {
                Some(stream) => (RequestGuard::Http2(stream), RequestAdmission::Accepted),
                None => (RequestGuard::None, RequestAdmission::ConnectionClosing),
            }
        } else {
            let admission = streams.activity.request_started();
            let guard = OpenRequestGuard::new(streams.activity.clone());
            (RequestGuard::Http1(guard), admission)
        };
        let response = endpoint.clone().respond(request, handle.clone(), admission);
        async move {
            let counted = |body| CountedBody::new(body, guard);
            Ok::<_, Infallible>(response.await?.map(counted))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_BYTES as u32)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    let mut connection = pin!(builder.serve_connection(io, service));
    // For HTTP/2: HTTP/1.1 has its deadline for headers.
    let mut check = pin!(sleep(timeouts.check_interval()));
    let mut closed = GatedFuture::new(closing_endpoint.closed());
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            // Also for the first request of HTTP/2, and until the first bytes have selected the version.
            () = poll_fn(|cx| {
                if has_http2_request.load(Ordering::Relaxed) {
                    return Poll::Pending;
                }
                header_deadline.poll(cx)
            }) => break Err("no request header in time".into()),
            () = check.as_mut() => match timeouts.next_step(Instant::now()) {
                TimeoutStep::CheckAt(at) => check.as_mut().reset(at),
                TimeoutStep::End(reason) => break reason.map_or(Ok(()), |reason| Err(reason.into())),
                TimeoutStep::StartClose => {
                    timeouts.is_closing = true;
                    own_handle.close();
                    connection.as_mut().graceful_shutdown();
                    check.as_mut().reset(Instant::now() + timeouts.check_interval());
                }
            },
            () = poll_fn(|cx| closed.poll(cx, closing_endpoint.is_closed())), if !timeouts.is_closing => {
                timeouts.is_closing = true;
                own_handle.close();
                connection.as_mut().graceful_shutdown();
                check.as_mut().reset(Instant::now() + timeouts.check_interval());
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "connection ended");
    }
}

/// The timeouts of an HTTP/2 connection. [`WriteTimeout`] applies as well, when the socket accepts no bytes.
struct ConnectionTimeouts {
    streams: Arc<Http2Streams>,
    /// Time without a request after which the connection closes.
    keep_alive: Duration,
    /// Time that a response may wait for the client to read.
    write: Duration,
    /// Set once no more requests are accepted.
    is_closing: bool,
}

/// What to do when the timeouts are checked.
enum TimeoutStep {
    CheckAt(Instant),
    /// Accept no more requests, and close when those that run have their responses.
    StartClose,
    /// End the connection now, for a reason that is worth a log message.
    End(Option<&'static str>),
}

impl ConnectionTimeouts {
    /// Returns the time between two checks. A response may start to wait right after a check, so it is at most the write
    /// timeout.
    fn check_interval(&self) -> Duration {
        self.max_idle().min(self.write).max(MIN_CHECK_INTERVAL)
    }

    fn max_idle(&self) -> Duration {
        if self.is_closing {
            CLOSE_GRACE
        } else {
            self.keep_alive
        }
    }

    fn next_step(&self, now: Instant) -> TimeoutStep {
        let stalled = self.streams.stalled_for(now).unwrap_or_default();
        if stalled >= self.write && !stalled.is_zero() {
            return TimeoutStep::End(Some("write timeout: the client does not read"));
        }
        let idle = self.streams.activity.idle_for(now).unwrap_or_default();
        if idle < self.max_idle() {
            let wait = (self.max_idle() - idle).min(self.write.saturating_sub(stalled));
            return TimeoutStep::CheckAt(now + wait.max(MIN_CHECK_INTERVAL));
        }
        if self.is_closing {
            TimeoutStep::End(None)
        } else {
            TimeoutStep::StartClose
        }
    }
}

impl ConnectionActivity {
    /// Counts one more open request, of several that are possible in HTTP/2. Returns false if the connection is closing,
    /// and the request must not run.
    fn add_request(&self) -> bool {
        let add = |state: u64| (state != CLOSING).then(|| state - state % REQUEST + REQUEST);
        self.update(add).is_ok()
    }

    /// Removes an open request of HTTP/2. After the last one the connection is idle.
    fn remove_request(&self, now: Instant) {
        let now = self.millis_since_start(now);
        let remove = |state: u64| match state.checked_sub(REQUEST) {
            Some(0) => Some(now),
            rest => rest,
        };
        // Only a connection without open requests is closing, so there is one to remove.
        let _ = self.update(remove);
    }
}

/// The open streams of an HTTP/2 connection.
///
/// A response that waits for the flow-control window keeps its stream open: hyper takes the whole chunk from the body, and h2
/// keeps it until the client allows to send it. So not only the body is counted but also the bytes that it has produced. A
/// client that reads slowly is not disconnected, however long a response takes. One that reads nothing of any response for
/// the write timeout is, as in HTTP/1.1.
struct Http2Streams {
    activity: Arc<ConnectionActivity>,
    /// The bodies and chunks that wait for the client to read.
    unsent: AtomicUsize,
    /// The time when the client last read something or a response began to wait, in milliseconds.
    last_progress_ms: AtomicU64,
}

impl Http2Streams {
    fn new(activity: Arc<ConnectionActivity>) -> Self {
        Self {
            activity,
            unsent: AtomicUsize::new(0),
            last_progress_ms: AtomicU64::new(0),
        }
    }

    fn note_progress(&self) {
        let now = self.activity.millis_since_start(Instant::now());
        self.last_progress_ms.store(now, Ordering::Relaxed);
    }

    /// Returns how long responses have waited for a client that reads nothing, or `None` if none waits.
    fn stalled_for(&self, now: Instant) -> Option<Duration> {
        let is_waiting = self.unsent.load(Ordering::Relaxed) > 0;
        let since = Duration::from_millis(self.last_progress_ms.load(Ordering::Relaxed));
        is_waiting.then(|| now.saturating_duration_since(self.activity.started + since))
    }
}

/// Counts an HTTP/2 stream as open until its response is sent.
struct Http2StreamGuard {
    streams: Arc<Http2Streams>,
}

impl Http2StreamGuard {
    /// Counts a stream. Returns `None` if the connection is closing.
    fn new(streams: &Arc<Http2Streams>) -> Option<Self> {
        streams.activity.add_request().then(|| Self {
            streams: streams.clone(),
        })
    }

    /// Counts something of the same stream that waits for the client to read.
    fn wait_for_client(&self) -> Option<UnsentGuard> {
        let stream = Self::new(&self.streams)?;
        stream.streams.unsent.fetch_add(1, Ordering::Relaxed);
        stream.streams.note_progress();
        Some(UnsentGuard { stream })
    }
}

impl Drop for Http2StreamGuard {
    fn drop(&mut self) {
        self.streams.activity.remove_request(Instant::now());
    }
}

/// Counts a request as open until its response is sent.
enum RequestGuard {
    Http1(#[expect(dead_code, reason = "dropped with the body")] OpenRequestGuard),
    Http2(Http2StreamGuard),
    /// The request is rejected, because its connection is closing.
    None,
}

impl RequestGuard {
    fn stream(&self) -> Option<&Http2StreamGuard> {
        match self {
            Self::Http2(stream) => Some(stream),
            Self::Http1(_) | Self::None => None,
        }
    }
}

/// Counts a body or a chunk that waits for the client to read.
struct UnsentGuard {
    stream: Http2StreamGuard,
}

impl Drop for UnsentGuard {
    fn drop(&mut self) {
        self.stream.streams.note_progress();
        self.stream.streams.unsent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body that keeps its request counted as open.
struct CountedBody {
    body: ResponseBody,
    guard: RequestGuard,
    /// Set unless the body waits for its next chunk: hyper polls it only if the client can receive something.
    unsent: Option<UnsentGuard>,
}

impl CountedBody {
    fn new(body: ResponseBody, guard: RequestGuard) -> Self {
        let unsent = guard.stream().and_then(Http2StreamGuard::wait_for_client);
        Self {
            body,
            guard,
            unsent,
        }
    }
}

impl http_body::Body for CountedBody {
    type Data = CountedBytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<CountedBytes>, Self::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let Some(stream) = this.guard.stream() else {
            return polled.map_ok(|frame| frame.map_data(CountedBytes::uncounted));
        };
        if polled.is_pending() {
            this.unsent = None;
            return Poll::Pending;
        }
        this.unsent = stream.wait_for_client();
        polled.map_ok(|frame| {
            frame.map_data(|bytes| CountedBytes {
                bytes,
                unsent: stream.wait_for_client(),
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that keep their HTTP/2 stream counted as open until they are sent.
struct CountedBytes {
    bytes: Bytes,
    unsent: Option<UnsentGuard>,
}

impl CountedBytes {
    fn uncounted(bytes: Bytes) -> Self {
        Self {
            bytes,
            unsent: None,
        }
    }
}

impl Buf for CountedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        if let Some(unsent) = self.unsent.as_ref().filter(|_| count > 0) {
            unsent.stream.streams.note_progress();
        }
        self.bytes.advance(count);
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        self.bytes.copy_to_bytes(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_the_last_of_its_requests() {
        let activity = ConnectionActivity::new(Instant::now());
        assert!(activity.add_request() && activity.add_request());
        tokio::time::advance(Duration::from_secs(1)).await;

        activity.remove_request(Instant::now());
        assert_eq!(activity.idle_since(), None);
        activity.remove_request(Instant::now());

        assert_eq!(activity.idle_since(), Some(1000));
        assert!(activity.try_close(1000));
        assert!(!activity.add_request());
        assert_eq!(activity.idle_since(), None);
    }
}
