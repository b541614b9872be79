//! Where a name leads, and whether one may go there.

use std::{
    fmt, io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ::http::Uri;
use turnbuckle_protocol::guard::BoxFuture;

use super::address::Class;
use crate::http::{
    url::Url,
    wire::{BoxError, Connection, Dialer},
};

/// Finds the addresses of a name.
pub(super) type Resolve =
    dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Connects to one of some addresses.
pub(super) type Reach = dyn Fn(Vec<SocketAddr>) -> Dialer + Send + Sync;

/// The network, as far as somebody may send us into it.
#[derive(Clone)]
pub(super) struct Network {
    sender: Sender,
    pub(super) resolve: Arc<Resolve>,
    pub(super) reach: Arc<Reach>,
}

/// Who sends us.
#[derive(Clone, Debug)]
enum Sender {
    /// The server on this host.
    Server(Arc<str>),
    /// The user, who may go anywhere.
    User,
}

/// An address that the sender must not send us to.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not to be reached from there")]
pub(super) struct Forbidden(pub(super) IpAddr);

impl Network {
    /// The network as a server may use it.
    pub(super) fn seen_from(server: &Url) -> Self {
        Self::of(Sender::Server(server.origin().host().into()))
    }

    /// The network as the user may use it.
    pub(super) fn of_the_user() -> Self {
        Self::of(Sender::User)
    }

    fn of(sender: Sender) -> Self {
        Self {
            sender,
            resolve: Arc::new(|host, port| Box::pin(lookup(host, port))),
            reach: Arc::new(Dialer::tcp_to),
        }
    }

    /// Returns what makes connections in it.
    pub(super) fn dialer(&self) -> Dialer {
        let network = self.clone();
        Dialer::new(move |uri| {
            let network = network.clone();
            async move { network.dial(uri).await }
        })
    }

    /// Connects to an address that was looked at, and to no other: asked again, a name may lead elsewhere.
    async fn dial(&self, uri: Uri) -> Result<Connection, BoxError> {
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let addresses = self.addresses(&host, port).await?;
        let limit = match addresses.iter().all(is_public) {
            true => Class::Public,
            false => self.limit(&host).await,
        };
        for address in &addresses {
            let class = Class::of(address.ip());
            // What is not encrypted stays on this machine, whatever a name says.
            let hidden = secure || class == Class::Loopback;
            if class > limit || !hidden {
                return Err(Forbidden(address.ip()).into());
            }
        }
        (self.reach)(addresses).dial(uri).await
    }

    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = (self.resolve)(host.to_owned(), port).await?;
        match found.is_empty() {
            true => Err(io::Error::other("the name has no address")),
            false => Ok(found),
        }
    }

    /// Says into which networks, at most, the sender may send us.
    async fn limit(&self, host: &str) -> Class {
        match &self.sender {
            Sender::User => Class::Loopback,
            // To itself, wherever it is: the user has been there before.
            Sender::Server(server) if **server == *host => Class::Loopback,
            Sender::Server(server) if is_this_machine(server) => Class::Loopback,
            Sender::Server(server) => {
                let addresses = self.addresses(server, 0).await.unwrap_or_default();
                let classes = addresses.iter().map(|address| Class::of(address.ip()));
                // With one foot in public it is public, and so is one that cannot be found. A name never makes it this
                // machine's: who owns a name can let it lead here for a moment.
                match classes.min().unwrap_or(Class::Public) {
                    Class::Private | Class::Loopback => Class::Private,
                    Class::Public | Class::Never => Class::Public,
                }
            }
        }
    }
}

fn is_public(address: &SocketAddr) -> bool {
    Class::of(address.ip()) == Class::Public
}

/// Says whether a host is this machine by what it is called, wherever names lead today.
pub(super) fn is_this_machine(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    match literal(host) {
        Some(address) => Class::of(address) == Class::Loopback,
        None => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// Reads a host that is an address.
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

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sender.fmt(f)
    }
}
