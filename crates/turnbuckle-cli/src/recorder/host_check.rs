//! Checks of `Host` and `Origin`, against DNS rebinding and cross-site requests.

use std::net::SocketAddr;

use http::{
    HeaderMap, HeaderName,
    header::{HOST, ORIGIN},
    request,
};
use turnbuckle_text::url::{Host, HostPort, HttpScheme, ParseUrlError};

/// The hosts that requests may name.
#[derive(Debug)]
pub(crate) struct HostCheck {
    allowed: Vec<HostPort>,
    /// Whether the loopback names and addresses are allowed.
    is_local: bool,
}

impl HostCheck {
    /// Creates a check for a relay that listens on this address, with the hosts of `--allow-host`.
    pub(crate) fn new(bound: SocketAddr, hosts: &[String]) -> Result<Self, ParseUrlError> {
        let ip = bound.ip();
        let allowed: Result<Vec<_>, _> = hosts.iter().map(|host| host.parse()).collect();
        let mut allowed = allowed?;
        if !ip.is_unspecified() {
            allowed.push(HostPort {
                host: Host::Ip(ip),
                port: None,
            });
        }
        Ok(Self {
            allowed,
            is_local: ip.is_loopback() || ip.is_unspecified(),
        })
    }

    /// Returns whether `Host`, and `Origin` if there is one, name an allowed host.
    pub(super) fn allows(&self, parts: &request::Parts) -> bool {
        let Some(Some(host)) = single_header(&parts.headers, &HOST) else {
            return false;
        };
        let target = parts.uri.authority();
        if target.is_some_and(|target| !target.as_str().eq_ignore_ascii_case(host)) {
            return false;
        }
        let origin = match single_header(&parts.headers, &ORIGIN) {
            None => return false,
            Some(origin) => origin,
        };
        let allows = |host: &HostPort| self.allows_host(host);
        host.parse().is_ok_and(|host| allows(&host))
            && origin.is_none_or(|origin| parse_origin(origin).is_ok_and(|host| allows(&host)))
    }

    fn allows_host(&self, requested: &HostPort) -> bool {
        let is_match = |allowed: &HostPort| {
            let is_port = allowed.port.is_none() || allowed.port == requested.port;
            allowed.host == requested.host && is_port
        };
        (self.is_local && requested.host.is_loopback()) || self.allowed.iter().any(is_match)
    }
}

/// Returns the host of a web origin, with its port.
fn parse_origin(origin: &str) -> Result<HostPort, ParseUrlError> {
    let (scheme, host) = HttpScheme::split(origin)?;
    let mut host: HostPort = host.parse()?;
    host.port.get_or_insert(scheme.default_port());
    Ok(host)
}

/// Returns the value of a header, if there is one. Returns `None` if there are several, or if it is not text.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(bound: &str, hosts: &[&str], headers: &[(&str, &str)]) -> bool {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let check = HostCheck::new(bound.parse().unwrap(), &hosts).unwrap();
        let request = headers
            .iter()
            .fold(http::Request::builder(), |request, (name, value)| {
                request.header(*name, *value)
            });
        check.allows(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn recorded_requests_name_an_allowed_host() {
        let local = "127.0.0.1:8322";
        let open = "0.0.0.0:8322";
        let lan = "192.0.2.7:8322";
        for (bound, hosts, headers, expected) in [
            (local, &[][..], &[("host", "localhost:8322")][..], true),
            (local, &[], &[("host", "evil.example")], false),
            (open, &[], &[("host", "evil.example")], false),
            (
                open,
                &["box.example"],
                &[("host", "box.example:8322")],
                true,
            ),
            (lan, &[], &[("host", "192.0.2.7:8322")], true),
            (lan, &[], &[("host", "localhost")], false),
            (local, &[], &[], false),
            (
                local,
                &[],
                &[("host", "localhost"), ("host", "evil.example")],
                false,
            ),
            (
                local,
                &[],
                &[("host", "localhost"), ("origin", "http://evil.example")],
                false,
            ),
            (
                local,
                &["box.example"],
                &[("host", "localhost"), ("origin", "https://box.example")],
                true,
            ),
            (
                local,
                &[],
                &[("host", "localhost"), ("origin", "null")],
                false,
            ),
        ] {
            assert_eq!(
                allows(bound, hosts, headers),
                expected,
                "{bound} {headers:?}"
            );
        }
    }
}
