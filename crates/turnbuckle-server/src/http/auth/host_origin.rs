//! Checks of `Host` and `Origin`, against DNS rebinding and cross-site requests.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{HOST, ORIGIN},
    request::Parts,
};

use crate::http::{HttpOptions, body::ResponseBody, responses};

/// The allowed hosts and origins, computed once.
pub(crate) struct HostOriginCheck {
    hosts: Vec<HostPort>,
    /// The values of `Host` that nearly every request has, compared without parsing.
    common_hosts: Vec<String>,
    origins: Vec<WebOrigin>,
    any_host: bool,
    any_origin: bool,
}

impl HostOriginCheck {
    pub(crate) fn new(options: &HttpOptions, bound_addr: Option<SocketAddr>) -> Self {
        let mut hosts = options.hosts.clone();
        let mut common_hosts = Vec::new();
        let is_local = bound_addr.is_none_or(|bound_addr| {
            bound_addr.ip().is_loopback() || bound_addr.ip().is_unspecified()
        });
        if is_local {
            hosts.extend(HostPort::loopback_names());
        }
        if let Some(bound_addr) = bound_addr.filter(|bound_addr| !bound_addr.ip().is_unspecified())
        {
            hosts.push(HostPort::from_ip(bound_addr.ip()));
            common_hosts.push(bound_addr.to_string());
        }
        Self {
            hosts,
            common_hosts,
            origins: options.origins.clone(),
            any_host: options.any_host,
            any_origin: options.any_origin,
        }
    }

    /// Checks a request, and returns the origin of the web page that sent it, if any.
    pub(crate) fn check(
        &self,
        parts: &Parts,
    ) -> Result<Option<HeaderValue>, ::http::Response<ResponseBody>> {
        self.check_host(parts)?;
        self.check_origin(&parts.headers)
    }

    fn check_host(&self, parts: &Parts) -> Result<(), ::http::Response<ResponseBody>> {
        if self.any_host || self.is_allowed_host(parts) {
            return Ok(());
        }
        let requested = parts.headers.get(HOST);
        Err(responses::invalid_request(
            StatusCode::FORBIDDEN,
            format!(
                "host {} is not allowed; allow it with `allow_host`",
                quote_header(requested)
            ),
        ))
    }

    fn is_allowed_host(&self, parts: &Parts) -> bool {
        let Ok(header) = single_header(&parts.headers, &HOST) else {
            return false;
        };
        // HTTP/2 has the host in the target, and HTTP/1.1 may. If both are present they must agree.
        let target = parts.uri.authority().map(::http::uri::Authority::as_str);
        let requested = match (header, target) {
            (Some(header), None) => header,
            (None, Some(target)) => target,
            (Some(header), Some(target)) if header.eq_ignore_ascii_case(target) => target,
            _ => return false,
        };
        self.common_hosts.iter().any(|common| common == requested)
            || requested
                .parse()
                .is_ok_and(|requested| self.hosts.iter().any(|host| host.allows(&requested)))
    }

    fn check_origin(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, ::http::Response<ResponseBody>> {
        let Some(origin) = headers.get(ORIGIN) else {
            return Ok(None);
        };
        let allowed = self.any_origin
            || single_header(headers, &ORIGIN)
                .ok()
                .flatten()
                .and_then(|origin| origin.parse().ok())
                .is_some_and(|origin| self.allows_origin(&origin));
        if allowed {
            return Ok(Some(origin.clone()));
        }
        Err(responses::invalid_request(
            StatusCode::FORBIDDEN,
            format!(
                "origin {} is not allowed; allow it with `allow_origin`",
                quote_header(Some(origin))
            ),
        ))
    }

    fn allows_origin(&self, origin: &WebOrigin) -> bool {
        self.origins.contains(origin) || self.hosts.iter().any(|host| host.allows(origin.host()))
    }
}

/// A duplicate header, or one that is not text.
struct AmbiguousHeader;

/// Returns the value of a header that may occur at most once.
fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &::http::HeaderName,
) -> Result<Option<&'a str>, AmbiguousHeader> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| AmbiguousHeader),
        (Some(_), Some(_)) => Err(AmbiguousHeader),
    }
}

/// Formats a header value for an error message, limited to 100 characters.
fn quote_header(value: Option<&HeaderValue>) -> String {
    let text = String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes));
    format!("{:?}", text.chars().take(100).collect::<String>())
}

/// A host with an optional port. An allowed host without a port matches every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    name: HostName,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostName {
    Address(IpAddr),
    /// In lower case.
    Domain(String),
}

impl HostPort {
    /// An address without a port.
    pub(crate) fn from_ip(address: IpAddr) -> Self {
        Self {
            name: HostName::Address(address),
            port: None,
        }
    }

    /// Returns the loopback names and addresses, without a port.
    pub(crate) fn loopback_names() -> [Self; 3] {
        let localhost = Self {
            name: HostName::Domain("localhost".to_owned()),
            port: None,
        };
        [
            localhost,
            Self::from_ip([127, 0, 0, 1].into()),
            Self::from_ip([0, 0, 0, 0, 0, 0, 0, 1].into()),
        ]
    }

    /// Returns whether this allowed host matches the host of a request.
    pub(crate) fn allows(&self, requested: &Self) -> bool {
        self.name == requested.name && (self.port.is_none() || self.port == requested.port)
    }
}

/// The error for text that is not a host or origin.
#[derive(Debug)]
pub(crate) struct ParseHostError;

impl FromStr for HostPort {
    type Err = ParseHostError;

    /// Parses exactly `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`: no user, no path, no empty port.
    fn from_str(text: &str) -> Result<Self, ParseHostError> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or(ParseHostError)?;
                let address = address.parse().map_err(|_| ParseHostError)?;
                (HostName::Address(IpAddr::V6(address)), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (parse_domain_or_v4(&text[..end])?, &text[end..])
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(parse_port(port)?),
            None if rest.is_empty() => None,
            None => return Err(ParseHostError),
        };
        Ok(Self { name, port })
    }
}

fn parse_domain_or_v4(text: &str) -> Result<HostName, ParseHostError> {
    if let Ok(address) = text.parse() {
        return Ok(HostName::Address(IpAddr::V4(address)));
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A trailing dot is rejected too: it is another spelling of the same name, and clients do not use it.
    if text.split('.').all(is_label) {
        Ok(HostName::Domain(text.to_ascii_lowercase()))
    } else {
        Err(ParseHostError)
    }
}

/// Parses a port. Unlike the standard parser it rejects `+80`.
fn parse_port(text: &str) -> Result<u16, ParseHostError> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(|_| ParseHostError)
    } else {
        Err(ParseHostError)
    }
}

/// The origin of a web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin {
    is_https: bool,
    host: HostPort,
}

impl WebOrigin {
    /// Returns the host, with the default port of the scheme if none was given.
    pub(crate) fn host(&self) -> &HostPort {
        &self.host
    }
}

impl FromStr for WebOrigin {
    type Err = ParseHostError;

    fn from_str(text: &str) -> Result<Self, ParseHostError> {
        let (is_https, host) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(host), _) => (true, host),
            (_, Some(host)) => (false, host),
            _ => return Err(ParseHostError),
        };
        let mut host: HostPort = host.parse()?;
        host.port.get_or_insert(if is_https { 443 } else { 80 });
        Ok(Self { is_https, host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_spellings_of_a_host_match() {
        for (allowed, requested) in [
            ("example.com", "EXAMPLE.com:8080"),
            ("example.com:80", "example.com:80"),
            ("[::1]", "[0:0:0:0:0:0:0:1]:80"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            let (allowed, requested): (HostPort, HostPort) =
                (allowed.parse().unwrap(), requested.parse().unwrap());
            assert!(allowed.allows(&requested), "{allowed:?} {requested:?}");
        }
    }

    #[test]
    fn an_allowed_port_does_not_allow_other_ports() {
        let allowed: HostPort = "example.com:80".parse().unwrap();

        assert!(!allowed.allows(&"example.com:81".parse().unwrap()));
        assert!(!allowed.allows(&"example.com".parse().unwrap()));
    }

    #[test]
    fn invalid_hosts_are_rejected() {
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
            assert!(text.parse::<HostPort>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_origin_implies_its_port() {
        let origin: WebOrigin = "https://example.com".parse().unwrap();

        assert_eq!(origin, "https://example.com:443".parse().unwrap());
        assert_ne!(origin, "http://example.com:443".parse().unwrap());
        for text in ["null", "file://", "https://example.com/", "example.com"] {
            assert!(text.parse::<WebOrigin>().is_err(), "{text:?}");
        }
    }
}
