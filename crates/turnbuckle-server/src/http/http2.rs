//! One connection in HTTP/2 or in HTTP/1.1, as its first bytes say.

use std::{
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
    Always, activity::Activity, body::Body, endpoint::Endpoint, head_timer::HeadTimer,
    linger::Linger, link::Link, stall::WriteStall,
};
use crate::seldom::Seldom;

/// How many bytes the head of a request may have.
const MAX_HEAD: usize = 64 * 1024;

/// How often to see whether a silent connection still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// How long an idle connection may take to end after it was told to.
const GOODBYE: Duration = Duration::from_secs(5);

/// Answers what comes over a connection until it ends, or until the endpoint closes and the requests that are running are answered.
pub(super) async fn serve<I>(
    io: I,
    peer: Option<SocketAddr>,
    endpoint: Arc<Endpoint>,
    activity: Arc<Activity>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (first, next) = (
        endpoint.options.header_timeout,
        endpoint.options.keep_alive_timeout,
    );
    let begun = Arc::new(AtomicBool::new(false));
    let begins = begun.clone();
    let io = WriteStall::new(io, activity.clone(), endpoint.options.write_timeout);
    let io = TokioIo::new(Linger::new(io, endpoint.clone(), activity.clone()));
    let timer = HeadTimer::new(activity.clone(), first, next);
    let link = Link::new(peer, activity.clone());
    let (served, own_link) = (endpoint.clone(), link.clone());
    let counted = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        begins.store(true, Ordering::Relaxed);
        let stream = (request.version() == Version::HTTP_2).then(|| OpenStream::new(&counted));
        counted.begin();
        let responding = endpoint.clone().respond(request, link.clone());
        async move {
            let counted = |body| StreamBody {
                body,
                _stream: stream,
            };
            Always::Ok(responding.await?.map(counted))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(timer)
        .header_read_timeout(next)
        .max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD as u32)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    let mut connection = pin!(builder.serve_connection(io, service));
    // Nobody else counts the time until the first bytes have said which version follows.
    let mut silence = pin!(async {
        sleep(first).await;
        if begun.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    });
    // HTTP/1.1 has a timer of its own.
    let mut idle = pin!(sleep(next));
    let mut closing = Seldom::new(served.closed());
    let mut is_closing = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = silence.as_mut() => break Ok(()),
            () = idle.as_mut() => {
                let now = Instant::now();
                let allowed = if is_closing { GOODBYE } else { next };
                let passed = activity.idle_for(now).unwrap_or_default();
                if passed < allowed {
                    idle.as_mut().reset(now + (allowed - passed));
                    continue;
                }
                if is_closing {
                    break Ok(());
                }
                is_closing = true;
                own_link.close();
                connection.as_mut().graceful_shutdown();
                idle.as_mut().reset(now + GOODBYE);
            }
            () = poll_fn(|cx| closing.poll(cx, served.is_closed())), if !is_closing => {
                is_closing = true;
                own_link.close();
                connection.as_mut().graceful_shutdown();
                idle.as_mut().reset(Instant::now() + GOODBYE);
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "connection ended");
    }
}

impl Activity {
    /// Returns for how long the connection has waited for a request; `None` while it has one.
    fn idle_for(&self, now: Instant) -> Option<Duration> {
        let since = self.started + Duration::from_millis(self.idle_since()?);
        Some(now.saturating_duration_since(since))
    }
}

/// A request on a stream of its own, until its answer is sent.
struct OpenStream {
    activity: Arc<Activity>,
}

impl OpenStream {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.streams.fetch_add(1, Ordering::Relaxed);
        Self {
            activity: activity.clone(),
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        // Before it counts as idle.
        self.activity.wait(Instant::now());
        self.activity.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer, which keeps its stream counted.
struct StreamBody {
    body: Body,
    _stream: Option<OpenStream>,
}

impl http_body::Body for StreamBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

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
