//! One connection in HTTP/1.1.

use std::{future::poll_fn, net::SocketAddr, sync::Arc, task::Poll};

use ::http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    activity::Activity, endpoint::Endpoint, head_timer::HeadTimer, linger::Linger, link::Link,
    stall::WriteStall,
};
use crate::seldom::Seldom;

/// How many bytes the head of a request may have.
const MAX_HEAD: usize = 64 * 1024;

/// Answers what comes over a connection until it ends, or until the endpoint closes and the request that is running is answered.
///
/// The future is kept small: it has only what it needs after it was made, and beside that the connection lies in a place
/// of its own. So what is touched of it whenever the connection is woken lies beside what the runtime looks at anyway.
pub(super) fn serve<I>(
    io: I,
    peer: Option<SocketAddr>,
    endpoint: Arc<Endpoint>,
    activity: Arc<Activity>,
) -> impl Future<Output = ()> + Send
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (first, next) = (
        endpoint.options.header_timeout,
        endpoint.options.keep_alive_timeout,
    );
    let io = WriteStall::new(io, activity.clone(), endpoint.options.write_timeout);
    let io = TokioIo::new(Linger::new(io, endpoint.clone(), activity.clone()));
    let timer = HeadTimer::new(activity.clone(), first, next);
    let link = Link::new(peer, activity.clone());
    let (served, own_link) = (endpoint.clone(), link.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        activity.begin();
        endpoint.clone().respond(request, link.clone())
    });
    // Half-closed connections are not kept: a client that closes its side has given up, and its call with it.
    let connection = http1::Builder::new()
        .timer(timer)
        .header_read_timeout(next)
        .max_header_size(MAX_HEAD)
        .serve_connection(io, service);
    let mut connection = Box::pin(connection);
    async move {
        let mut closed = Seldom::new(served.closed());
        let ended = poll_fn(|cx| match connection.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending => closed.poll(cx, served.is_closed()).map(|()| None),
        });
        let ended = match ended.await {
            Some(ended) => ended,
            None => {
                own_link.close();
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, peer = ?own_link.peer(), "connection ended");
        }
    }
}
