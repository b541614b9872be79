//! The address that a command listens on.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// The address that a command listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// HTTP on a port.
    Tcp(SocketAddr),
    /// Newline-delimited JSON on a Unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns the address of a port on 127.0.0.1.
    pub(crate) fn loopback(port: u16) -> Self {
        Self::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Parses the value of `--listen`. An IP address without a port gets the default port.
    pub(crate) fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("expected a path after `unix:`".to_owned()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Tcp(SocketAddr::new(ip, default_port)));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let address = match host {
            "" | "localhost" => port.parse().ok().map(Self::loopback),
            _ => text.parse().ok().map(Self::Tcp),
        };
        address.ok_or_else(|| {
            format!(
                "expected 127.0.0.1:{default_port}, [::1]:{default_port}, localhost:{default_port} or unix:PATH"
            )
        })
    }

    /// Resolves the path of a socket relative to a directory.
    pub(crate) fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Unix(path) => Self::Unix(folder.join(path)),
            tcp @ Self::Tcp(_) => tcp,
        }
    }

    /// Returns whether only programs on this machine can connect.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ListenAddress, String> {
        ListenAddress::parse(text, 8321)
    }

    #[test]
    fn an_address_is_tcp_or_unix() {
        let addresses = [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:8000", "127.0.0.1:8000"),
            (":8000", "127.0.0.1:8000"),
            ("8000", "127.0.0.1:8000"),
            ("unix:/run/s", "unix:/run/s"),
        ];
        for (text, address) in addresses {
            assert_eq!(parse(text).unwrap().to_string(), address, "{text}");
        }
        for wrong in ["", "unix:", "example.com:80", "1:99999", "http://a:1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ListenAddress::loopback(8321).to_string(), "127.0.0.1:8321");
        for (text, address) in [("0.0.0.0", "0.0.0.0:8321"), ("::", "[::]:8321")] {
            assert_eq!(parse(text).unwrap().to_string(), address);
        }
    }

    #[test]
    fn only_loopback_and_sockets_are_local() {
        let local = |text: &str| parse(text).unwrap().is_local();
        assert!(local("127.0.0.2:1") && local("[::1]:1") && local("unix:s"));
        assert!(!local("0.0.0.0:1") && !local("[::]:1") && !local("192.168.1.1:1"));
    }
}
