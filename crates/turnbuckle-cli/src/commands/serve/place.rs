//! Where a server listens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// HTTP on a port.
    Tcp(SocketAddr),
    /// Lines on a Unix socket.
    Unix(PathBuf),
}

impl Place {
    /// Where it listens unless told otherwise.
    pub(super) const USUAL: Self = Self::Tcp(SocketAddr::new(
        std::net::IpAddr::V4(Ipv4Addr::LOCALHOST),
        8321,
    ));

    /// Says whether only programs on this machine can connect.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

/// Reads what stands after `--listen`.
pub(super) fn read(text: &str) -> Result<Place, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("the path of the socket is missing".to_owned()),
            path => Ok(Place::Unix(path.into())),
        };
    }
    let here = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse().ok();
    let address = match host {
        "" | "localhost" => port.map(here),
        _ => text.parse().ok(),
    };
    let advice = "write it as 127.0.0.1:8321, [::1]:8321, localhost:8321 or unix:PATH";
    address.map(Place::Tcp).ok_or_else(|| advice.to_owned())
}

impl fmt::Display for Place {
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

    #[test]
    fn a_place_is_an_address_or_a_socket() {
        let places = [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:8000", "127.0.0.1:8000"),
            (":8000", "127.0.0.1:8000"),
            ("8000", "127.0.0.1:8000"),
            ("unix:/run/s", "unix:/run/s"),
        ];
        for (text, place) in places {
            assert_eq!(read(text).unwrap().to_string(), place, "{text}");
        }
        for wrong in [
            "",
            "unix:",
            "example.com:80",
            "127.0.0.1",
            "1:99999",
            "http://a:1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Place::USUAL.to_string(), "127.0.0.1:8321");
    }

    #[test]
    fn only_loopback_and_sockets_are_local() {
        let local = |text: &str| read(text).unwrap().is_local();
        assert!(local("127.0.0.2:1") && local("[::1]:1") && local("unix:s"));
        assert!(!local("0.0.0.0:1") && !local("[::]:1") && !local("192.168.1.1:1"));
    }
}
