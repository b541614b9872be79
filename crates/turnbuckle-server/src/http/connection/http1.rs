//! Serves one HTTP/1.1 connection.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ::http::Request;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    OpenRequestGuard, header_deadline::HeaderDeadline, lingering_close::LingeringClose,
    write_timeout::WriteTimeout,
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

/// Serves a connection until it ends, or until the endpoint shuts down and the running request has its response.
///
/// The future is kept small: it holds only what it needs after setup, and the hyper connection is boxed. So the part that
/// is touched on every wake is next to the data that the runtime touches anyway.
pub(crate) fn serve_connection<I>(
    io: I,
    peer: Option<SocketAddr>,
    endpoint: Arc<Endpoint>,
    activity: Arc<ConnectionActivity>,
) -> impl Future<Output = ()> + Send
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (first, next) = (
        endpoint.options.header_timeout,
        endpoint.options.keep_alive_timeout,
    );
    let io = WriteTimeout::new(io, activity.clone(), endpoint.options.write_timeout);
    let io = TokioIo::new(LingeringClose::new(io, endpoint.clone(), activity.clone()));
    let mut header_deadline = HeaderDeadline::new(activity.clone(), first, next);
    let handle = ConnectionHandle::new(peer, activity.clone());
    let (closing_endpoint, own_handle) = (endpoint.clone(), handle.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let admission = activity.request_started();
        let guard = OpenRequestGuard::new(activity.clone());
        let response = endpoint.clone().respond(request, handle.clone(), admission);
        async move {
            let guarded = |body| GuardedBody { body, guard };
            Ok::<_, Infallible>(response.await?.map(guarded))
        }
    });
    // Half-closed connections are closed: a client that closes its side has cancelled its request.
    let connection = http1::Builder::new()
        .max_header_size(MAX_HEADER_BYTES)
        .serve_connection(io, service);
    let mut connection = Box::pin(connection);
    async move {
        let mut closed = GatedFuture::new(closing_endpoint.closed());
        let mut is_closing = false;
        let ended = poll_fn(|cx| {
            loop {
                if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                    return Poll::Ready(Some(result));
                }
                if header_deadline.poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                if is_closing || closed.poll(cx, closing_endpoint.is_closed()).is_pending() {
                    return Poll::Pending;
                }
                is_closing = true;
                own_handle.close();
                connection.as_mut().graceful_shutdown();
            }
        });
        match ended.await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, peer = ?own_handle.peer(), "connection ended");
            }
            None => tracing::debug!(peer = ?own_handle.peer(), "no request header in time"),
        }
    }
}

/// A response body that keeps its request counted as open until all of it has been passed to hyper.
struct GuardedBody {
    body: ResponseBody,
    #[expect(dead_code, reason = "dropped with the body")]
    guard: OpenRequestGuard,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
