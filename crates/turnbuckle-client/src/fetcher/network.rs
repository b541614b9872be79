//! The network policy: resolves names, and decides which addresses may be connected to.

use std::{
    fmt, io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ::http::Uri;
use turnbuckle_protocol::authenticator::BoxFuture;

use crate::{
    fetcher::ip_class::IpClass,
    transport::{
        http::url::Url,
        http_client::{BoxError, Dialer, HttpConnection},
    },
};

/// Resolves a host name.
pub(super) type ResolveFn =
    dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Creates a dialer for resolved addresses.
pub(super) type ConnectFn = dyn Fn(Vec<SocketAddr>) -> Dialer + Send + Sync;

/// The network policy for URLs of one source.
#[derive(Clone)]
pub(super) struct NetworkPolicy {
    source: UrlSource,
    pub(super) resolve: Arc<ResolveFn>,
    pub(super) connect: Arc<ConnectFn>,
}

/// The source of a URL.
#[derive(Clone, Debug)]
enum UrlSource {
    /// The server on this host.
    Server(Arc<str>),
    /// The user, without restrictions.
    User,
}

/// An address that the policy forbids.
#[derive(Debug, thiserror::Error)]
#[error("connections to {0} are not allowed from this server")]
pub(super) struct ForbiddenAddress(pub(super) IpAddr);

impl NetworkPolicy {
    /// Creates the policy for URLs that a server names.
    pub(super) fn from_server(server: &Url) -> Self {
        Self::new(UrlSource::Server(server.origin().host().into()))
    }

    /// Creates the policy for URLs that the user configured.
    pub(super) fn user_configured() -> Self {
        Self::new(UrlSource::User)
    }

    fn new(source: UrlSource) -> Self {
        Self {
            source,
            resolve: Arc::new(|host, port| Box::pin(lookup(host, port))),
            connect: Arc::new(Dialer::tcp_to),
        }
    }

    /// Returns a dialer that applies the policy.
    pub(super) fn dialer(&self) -> Dialer {
        let network = self.clone();
        Dialer::new(move |uri| {
            let network = network.clone();
            async move { network.dial(uri).await }
        })
    }

    /// Connects to the checked address only: a second resolution may return another one.
    async fn dial(&self, uri: Uri) -> Result<HttpConnection, BoxError> {
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let addresses = self.addresses(&host, port).await?;
        let limit = if addresses.iter().all(is_public) {
            IpClass::Public
        } else {
            self.limit(&host).await
        };
        for address in &addresses {
            let class = IpClass::from_ip(address.ip());
            // Unencrypted connections are made to this machine only, whatever the name is.
            let hidden = secure || class == IpClass::Loopback;
            if class > limit || !hidden {
                return Err(ForbiddenAddress(address.ip()).into());
            }
        }
        (self.connect)(addresses).dial(uri).await
    }

    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = (self.resolve)(host.to_owned(), port).await?;
        if found.is_empty() {
            Err(io::Error::other(
                "the host name does not resolve to an address",
            ))
        } else {
            Ok(found)
        }
    }

    /// Returns the least accessible class that the source may use.
    async fn limit(&self, host: &str) -> IpClass {
        match &self.source {
            UrlSource::User => IpClass::Loopback,
            // A server may use its own host, which the user has connected to.
            UrlSource::Server(server) if **server == *host => IpClass::Loopback,
            UrlSource::Server(server) if is_this_machine(server) => IpClass::Loopback,
            UrlSource::Server(server) => {
                let addresses = self.addresses(server, 0).await.unwrap_or_default();
                let classes = addresses
                    .iter()
                    .map(|address| IpClass::from_ip(address.ip()));
                // A server with a public address is public, and so is one that does not resolve. A name never makes a
                // server local: its owner can change the address that it resolves to.
                match classes.min().unwrap_or(IpClass::Public) {
                    IpClass::Private | IpClass::Loopback => IpClass::Private,
                    IpClass::Public | IpClass::Never => IpClass::Public,
                }
            }
        }
    }
}

fn is_public(address: &SocketAddr) -> bool {
    IpClass::from_ip(address.ip()) == IpClass::Public
}

/// Returns whether a host name is local by definition, whatever it resolves to.
pub(super) fn is_this_machine(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    match literal(host) {
        Some(address) => IpClass::from_ip(address) == IpClass::Loopback,
        None => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// Parses a host that is an IP address.
fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(six) => six
            .strip_suffix(']')?
            .parse::<Ipv6Addr>()
            .ok()
            .map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

async fn lookup(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

impl fmt::Debug for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
