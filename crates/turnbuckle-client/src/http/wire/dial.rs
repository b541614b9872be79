//! How connections are made.

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
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use super::connection::Connection;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
type Dialing = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

/// Makes connections; cheap to clone.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<dyn Fn(Uri) -> Dialing + Send + Sync>);

/// Nobody answered within the limit.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(super) struct TimedOut(pub(super) Duration);

impl Dialer {
    /// Connects by TCP to the host and port of the URL.
    pub(crate) fn tcp() -> Self {
        Self::of_service(prepared(HttpConnector::new()))
    }

    /// Connects by TCP to one of these addresses, whatever the host of the URL is.
    pub(crate) fn tcp_to(addresses: Vec<SocketAddr>) -> Self {
        Self::of_service(prepared(HttpConnector::new_with_resolver(Known(addresses))))
    }

    /// Connects by whatever a program brings, such as a Unix socket.
    pub(crate) fn through<F, S>(dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::new(move |_| {
            let dialing = dial();
            async move { Ok(Connection::new(TokioIo::new(dialing.await?))) }
        })
    }

    /// Connects as a connector of hyper does.
    pub(super) fn of_service<C>(connector: C) -> Self
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
                Ok(Connection::new(stream))
            }
        })
    }

    /// Makes a connection to the host of a URL.
    pub(crate) async fn dial(&self, uri: Uri) -> Result<Connection, BoxError> {
        self.0(uri).await
    }

    /// Gives up after some time, whatever it is that takes so long.
    pub(super) fn within(self, limit: Duration) -> Self {
        Self::new(move |uri| {
            let dialing = self.0(uri);
            async move {
                match tokio::time::timeout(limit, dialing).await {
                    Ok(dialed) => dialed,
                    Err(_) => Err(TimedOut(limit).into()),
                }
            }
        })
    }

    /// Connects by whatever makes a connection of a URL.
    pub(crate) fn new<F>(dial: impl Fn(Uri) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Connection, BoxError>> + Send + 'static,
    {
        Self(Arc::new(move |uri| Box::pin(dial(uri))))
    }
}

fn prepared<R>(mut connector: HttpConnector<R>) -> HttpConnector<R> {
    // Requests are small and each is written at once: waiting for more only costs time.
    connector.set_nodelay(true);
    // A stream may be silent for hours; that the other side is gone must show some time.
    connector.set_keepalive(Some(Duration::from_secs(60)));
    // TLS, if wanted, comes on top.
    connector.enforce_http(false);
    connector
}

/// Addresses that are known already, for whatever name.
#[derive(Clone)]
struct Known(Vec<SocketAddr>);

impl Service<Name> for Known {
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
    type Response = Connection;
    type Error = BoxError;
    type Future = Dialing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Dialing {
        self.0(uri)
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}
