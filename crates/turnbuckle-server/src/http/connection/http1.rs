//! Serves one HTTP/1.1 connection.

use std::{future::poll_fn, net::SocketAddr, sync::Arc, task::Poll};

use ::http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    header_timer::HeaderTimer, lingering_close::LingeringClose, write_timeout::WriteTimeout,
};
use crate::{
    http::{
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
    let timer = HeaderTimer::new(activity.clone(), first, next);
    let handle = ConnectionHandle::new(peer, activity.clone());
    let (closing_endpoint, own_handle) = (endpoint.clone(), handle.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let admission = activity.request_started();
        endpoint.clone().respond(request, handle.clone(), admission)
    });
    // Half-closed connections are closed: a client that closes its side has cancelled its request.
    let connection = http1::Builder::new()
        .timer(timer)
        .header_read_timeout(next)
        .max_header_size(MAX_HEADER_BYTES)
        .serve_connection(io, service);
    let mut connection = Box::pin(connection);
    async move {
        let mut closed = GatedFuture::new(closing_endpoint.closed());
        let result = poll_fn(|cx| match connection.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => closed.poll(cx, closing_endpoint.is_closed()).map(|()| None),
        });
        let result = match result.await {
            Some(result) => result,
            None => {
                own_handle.close();
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, peer = ?own_handle.peer(), "connection ended");
        }
    }
}
