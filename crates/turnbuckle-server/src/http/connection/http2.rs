//! Serves one connection in HTTP/2 or HTTP/1.1, detected by its first bytes.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use ::http::{Request, Version};
use bytes::Bytes;
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
    header_timer::HeaderTimer, lingering_close::LingeringClose, write_timeout::WriteTimeout,
};
use crate::{
    http::{
        body::ResponseBody,
        connection::{ConnectionActivity, ConnectionHandle},
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
    let had_request = Arc::new(AtomicBool::new(false));
    let sees_request = had_request.clone();
    let io = WriteTimeout::new(io, activity.clone(), endpoint.options.write_timeout);
    let io = TokioIo::new(LingeringClose::new(io, endpoint.clone(), activity.clone()));
    let timer = HeaderTimer::new(activity.clone(), first, next);
    let handle = ConnectionHandle::new(peer, activity.clone());
    let (closing_endpoint, own_handle) = (endpoint.clone(), handle.clone());
    let counted = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        sees_request.store(true, Ordering::Relaxed);
        let stream =
            (request.version() == Version::HTTP_2).then(|| Http2StreamGuard::new(&counted));
        counted.request_started();
        let response = endpoint.clone().respond(request, handle.clone());
        async move {
            let counted = |body| CountedBody {
                body,
                _stream: stream,
            };
            Ok::<_, Infallible>(response.await?.map(counted))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(timer)
        .header_read_timeout(next)
        .max_buf_size(MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_BYTES as u32)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    let mut connection = pin!(builder.serve_connection(io, service));
    // No other timer runs until the first bytes have selected the HTTP version.
    let mut first_request_timeout = pin!(async {
        sleep(first).await;
        if had_request.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    });
    // Only for HTTP/2: HTTP/1.1 has its own timer.
    let mut idle = pin!(sleep(next));
    let mut closed = GatedFuture::new(closing_endpoint.closed());
    let mut is_closing = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = first_request_timeout.as_mut() => break Ok(()),
            () = idle.as_mut() => {
                let now = Instant::now();
                let allowed = if is_closing { CLOSE_GRACE } else { next };
                let idle_time = activity.idle_for(now).unwrap_or_default();
                if idle_time < allowed {
                    idle.as_mut().reset(now + (allowed - idle_time));
                    continue;
                }
                if is_closing {
                    break Ok(());
                }
                is_closing = true;
                own_handle.close();
                connection.as_mut().graceful_shutdown();
                idle.as_mut().reset(now + CLOSE_GRACE);
            }
            () = poll_fn(|cx| closed.poll(cx, closing_endpoint.is_closed())), if !is_closing => {
                is_closing = true;
                own_handle.close();
                connection.as_mut().graceful_shutdown();
                idle.as_mut().reset(Instant::now() + CLOSE_GRACE);
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "connection ended");
    }
}

impl ConnectionActivity {
    /// Returns how long the connection has been idle, or `None` while it has a request.
    fn idle_for(&self, now: Instant) -> Option<Duration> {
        let since = self.started + Duration::from_millis(self.idle_since()?);
        Some(now.saturating_duration_since(since))
    }
}

/// Counts an HTTP/2 stream as open until its response is sent.
struct Http2StreamGuard {
    activity: Arc<ConnectionActivity>,
}

impl Http2StreamGuard {
    fn new(activity: &Arc<ConnectionActivity>) -> Self {
        activity.streams.fetch_add(1, Ordering::Relaxed);
        Self {
            activity: activity.clone(),
        }
    }
}

impl Drop for Http2StreamGuard {
    fn drop(&mut self) {
        // Set the time first: without open streams the connection counts as idle.
        self.activity.mark_idle(Instant::now());
        self.activity.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body that keeps its HTTP/2 stream counted as open.
struct CountedBody {
    body: ResponseBody,
    _stream: Option<Http2StreamGuard>,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
