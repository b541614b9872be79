//! Connections: TCP, TLS, or a function of the program.

use std::{
    convert::Infallible,
    error::Error,
    fmt,
    future::{Ready, ready},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ::http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{self, Connected, HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;
use turnbuckle_protocol::codec::join_small;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
type DialFuture = Pin<Box<dyn Future<Output = Result<HttpConnection, BoxError>> + Send>>;

/// Makes connections; cheap to clone.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<dyn Fn(Uri) -> DialFuture + Send + Sync>);

/// Connecting took too long.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(super) struct ConnectTimeout(pub(super) Duration);

impl Dialer {
    /// Connects by TCP to the host and port of the URL.
    pub(crate) fn tcp() -> Self {
        Self::from_service(configured(HttpConnector::new()))
    }

    /// Connects by TCP to one of these addresses, whatever the host of the URL is.
    pub(crate) fn tcp_to(addresses: Vec<SocketAddr>) -> Self {
        Self::from_service(configured(HttpConnector::new_with_resolver(
            FixedAddresses(addresses),
        )))
    }

    /// Connects with a function, for example to a unix socket.
    pub(crate) fn from_fn<F, S>(dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::new(move |_| {
            let dialing = dial();
            async move { Ok(HttpConnection::new(TokioIo::new(dialing.await?))) }
        })
    }

    /// Connects with a hyper connector.
    pub(super) fn from_service<C>(connector: C) -> Self
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send + 'static,
    {
        Self::new(move |uri| {
            let mut connector = connector.clone();
            async move {
                std::future::poll_fn(|cx| connector.poll_ready(cx))
                    .await
                    .map_err(Into::into)?;
                let stream = connector.call(uri).await.map_err(Into::into)?;
                Ok(HttpConnection::new(stream))
            }
        })
    }

    /// Connects to the host of a URL.
    pub(crate) async fn dial(&self, uri: Uri) -> Result<HttpConnection, BoxError> {
        self.0(uri).await
    }

    /// Limits the time to connect.
    pub(super) fn with_timeout(self, limit: Duration) -> Self {
        Self::new(move |uri| {
            let dialing = self.0(uri);
            async move {
                match tokio::time::timeout(limit, dialing).await {
                    Ok(dialed) => dialed,
                    Err(_) => Err(ConnectTimeout(limit).into()),
                }
            }
        })
    }

    /// Connects with a function of the URL.
    pub(crate) fn new<F>(dial: impl Fn(Uri) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<HttpConnection, BoxError>> + Send + 'static,
    {
        Self(Arc::new(move |uri| Box::pin(dial(uri))))
    }
}

fn configured<R>(mut connector: HttpConnector<R>) -> HttpConnector<R> {
    // Requests are small and written at once, so Nagle's algorithm only adds latency.
    connector.set_nodelay(true);
    // A stream may be idle for hours; keep-alive detects that the peer is gone.
    connector.set_keepalive(Some(Duration::from_secs(60)));
    // TLS is added by the HTTPS connector.
    connector.enforce_http(false);
    connector
}

/// A resolver that returns fixed addresses.
#[derive(Clone)]
struct FixedAddresses(Vec<SocketAddr>);

impl Service<Name> for FixedAddresses {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(self.0.clone().into_iter()))
    }
}

impl Service<Uri> for Dialer {
    type Response = HttpConnection;
    type Error = BoxError;
    type Future = DialFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> DialFuture {
        self.0(uri)
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}

/// A connection: one type for TCP, TLS and custom streams.
pub(crate) struct HttpConnection(Box<dyn IoStream>);

trait IoStream: Read + Write + Send + Unpin {}

impl<S: Read + Write + Send + Unpin> IoStream for S {}

impl HttpConnection {
    pub(super) fn new(stream: impl Read + Write + Send + Unpin + 'static) -> Self {
        Self(Box::new(stream))
    }
}

impl connect::Connection for HttpConnection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for HttpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        match join_small::join_small(parts, &mut [0; join_small::MAX_JOINED_BYTES]) {
            Some(all) => stream.poll_write(cx, all),
            None => stream.poll_write_vectored(cx, parts),
        }
    }
}

impl fmt::Debug for HttpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpConnection")
    }
}
