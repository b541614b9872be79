//! One connection in HTTP/2 or in HTTP/1.1, as its first bytes say.

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};

use super::{endpoint::Endpoint, head_timer::HeadTimer, link::Link, stall::WriteStall};
use crate::seldom::Seldom;

/// How many bytes the head of a request may have.
const MAX_HEAD: usize = 64 * 1024;

/// How often to see whether a silent connection still lives.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Answers what comes over a connection until it ends, or until the endpoint closes and the requests that are running are answered.
pub(super) async fn serve<I>(io: I, peer: Option<SocketAddr>, endpoint: Arc<Endpoint>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header_timeout = endpoint.options.header_timeout;
    let begun = Arc::new(AtomicBool::new(false));
    let begins = begun.clone();
    let io = TokioIo::new(WriteStall::new(io, endpoint.options.write_timeout));
    let link = Link::new(peer);
    let (served, own_link) = (endpoint.clone(), link.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        begins.store(true, Ordering::Relaxed);
        endpoint.clone().respond(request, link.clone())
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(HeadTimer::default())
        .header_read_timeout(header_timeout)
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
        sleep(header_timeout).await;
        if begun.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    });
    let mut closing = Seldom::new(served.closed());
    let mut is_closing = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = silence.as_mut() => break Ok(()),
            () = poll_fn(|cx| closing.poll(cx, served.is_closed())), if !is_closing => {
                is_closing = true;
                own_link.close();
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?peer, "connection ended");
    }
}
