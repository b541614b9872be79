//! Hosts and origins, as headers name them and as they are allowed.

use std::{net::IpAddr, str::FromStr};

/// A host and perhaps a port; an allowed one without a port stands for every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    /// In lower case.
    Domain(String),
}

impl Host {
    /// An address, on every port.
    pub(super) fn address(address: IpAddr) -> Self {
        Self {
            name: Name::Address(address),
            port: None,
        }
    }

    /// The names that this machine has for itself, on every port.
    pub(super) fn this_machine() -> [Self; 3] {
        let localhost = Self {
            name: Name::Domain("localhost".to_owned()),
            port: None,
        };
        [
            localhost,
            Self::address([127, 0, 0, 1].into()),
            Self::address([0, 0, 0, 0, 0, 0, 0, 1].into()),
        ]
    }

    /// Says whether this one, which is allowed, allows what a request names.
    pub(super) fn allows(&self, named: &Self) -> bool {
        self.name == named.name && (self.port.is_none() || self.port == named.port)
    }
}

/// A text that is no host, or no origin.
#[derive(Debug)]
pub(super) struct Unreadable;

impl FromStr for Host {
    type Err = Unreadable;

    /// Reads exactly `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`: no user, no path, no empty port.
    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or(Unreadable)?;
                let address = address.parse().map_err(|_| Unreadable)?;
                (Name::Address(IpAddr::V6(address)), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (domain_or_v4(&text[..end])?, &text[end..])
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(decimal(port)?),
            None if rest.is_empty() => None,
            None => return Err(Unreadable),
        };
        Ok(Self { name, port })
    }
}

fn domain_or_v4(text: &str) -> Result<Name, Unreadable> {
    if let Ok(address) = text.parse() {
        return Ok(Name::Address(IpAddr::V4(address)));
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // The dot that may end a name is refused too: it is another spelling, and none that clients use.
    if text.split('.').all(is_label) {
        Ok(Name::Domain(text.to_ascii_lowercase()))
    } else {
        Err(Unreadable)
    }
}

/// Reads a port; `+80` would pass the standard parser.
fn decimal(text: &str) -> Result<u16, Unreadable> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(|_| Unreadable)
    } else {
        Err(Unreadable)
    }
}

/// Where a web page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    secure: bool,
    host: Host,
}

impl Origin {
    /// The host, with the port that the scheme implies.
    pub(super) fn host(&self) -> &Host {
        &self.host
    }
}

impl FromStr for Origin {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let (secure, host) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(host), _) => (true, host),
            (_, Some(host)) => (false, host),
            _ => return Err(Unreadable),
        };
        let mut host: Host = host.parse()?;
        host.port.get_or_insert(if secure { 443 } else { 80 });
        Ok(Self { secure, host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_several_spellings() {
        for (allowed, named) in [
            ("example.com", "EXAMPLE.com:8080"),
            ("example.com:80", "example.com:80"),
            ("[::1]", "[0:0:0:0:0:0:0:1]:80"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            let (allowed, named): (Host, Host) = (allowed.parse().unwrap(), named.parse().unwrap());
            assert!(allowed.allows(&named), "{allowed:?} {named:?}");
        }
    }

    #[test]
    fn what_is_allowed_on_one_port_is_not_on_another() {
        let allowed: Host = "example.com:80".parse().unwrap();

        assert!(!allowed.allows(&"example.com:81".parse().unwrap()));
        assert!(!allowed.allows(&"example.com".parse().unwrap()));
    }

    #[test]
    fn what_is_no_host_is_not_read_as_one() {
        for text in [
            "",
            ":80",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost:8o",
            "localhost.",
            "user@localhost",
            "localhost/",
            "local host",
            "localhost:80:80",
            "[::1",
            "[::1]80",
            "[localhost]",
            "::1",
            "lo\u{e9}",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_origin_implies_its_port() {
        let origin: Origin = "https://example.com".parse().unwrap();

        assert_eq!(origin, "https://example.com:443".parse().unwrap());
        assert_ne!(origin, "http://example.com:443".parse().unwrap());
        for text in ["null", "file://", "https://example.com/", "example.com"] {
            assert!(text.parse::<Origin>().is_err(), "{text:?}");
        }
    }
}
