//! Checks of `Host` and `Origin`, against DNS rebinding and cross-site requests.

use std::{net::SocketAddr, str::FromStr};

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{HOST, ORIGIN},
    request::Parts,
};
use turnbuckle_text::url::{Host, HostPort, HttpScheme, ParseUrlError};

use crate::http::{HttpOptions, body::ResponseBody, responses};

/// The allowed hosts and origins, computed once.
pub(crate) struct HostOriginCheck {
    hosts: Vec<HostPort>,
    /// The values of `Host` that nearly every request has, compared without parsing.
    common_hosts: Vec<String>,
    origins: Vec<WebOrigin>,
    host_setting: Option<String>,
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
            hosts.extend(loopback_hosts());
        }
        if let Some(bound_addr) = bound_addr.filter(|bound_addr| !bound_addr.ip().is_unspecified())
        {
            hosts.push(any_port(Host::Ip(bound_addr.ip())));
            common_hosts.push(bound_addr.to_string());
        }
        Self {
            hosts,
            common_hosts,
            origins: options.origins.clone(),
            host_setting: options.host_setting.clone(),
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
        let requested = quote_header(parts.headers.get(HOST));
        let setting = self.host_setting.as_deref().unwrap_or("allow_host");
        Err(responses::invalid_request(
            StatusCode::FORBIDDEN,
            format!("host {requested} is not allowed; allow it with `{setting}`"),
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
                .is_ok_and(|requested| self.hosts.iter().any(|host| is_match(host, &requested)))
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
        let origin = quote_header(Some(origin));
        let hint = match &self.host_setting {
            // The pages of an allowed host may use the server.
            Some(setting) => format!("allow its host with `{setting}`"),
            None => "allow it with `allow_origin`".to_owned(),
        };
        Err(responses::invalid_request(
            StatusCode::FORBIDDEN,
            format!("origin {origin} is not allowed; {hint}"),
        ))
    }

    fn allows_origin(&self, origin: &WebOrigin) -> bool {
        self.origins.contains(origin) || self.hosts.iter().any(|host| is_match(host, origin.host()))
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

/// Returns the loopback names and addresses.
fn loopback_hosts() -> [HostPort; 3] {
    [
        Host::Name("localhost".to_owned()),
        Host::Ip([127, 0, 0, 1].into()),
        Host::Ip([0, 0, 0, 0, 0, 0, 0, 1].into()),
    ]
    .map(any_port)
}

fn any_port(host: Host) -> HostPort {
    HostPort { host, port: None }
}

/// Returns whether an allowed host matches the host of a request. An allowed host without a port matches every port.
fn is_match(allowed: &HostPort, requested: &HostPort) -> bool {
    allowed.host == requested.host && (allowed.port.is_none() || allowed.port == requested.port)
}

/// The origin of a web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin {
    scheme: HttpScheme,
    host: HostPort,
}

impl WebOrigin {
    /// Returns the host, with the default port of the scheme if none was given.
    pub(crate) fn host(&self) -> &HostPort {
        &self.host
    }
}

impl FromStr for WebOrigin {
    type Err = ParseUrlError;

    fn from_str(text: &str) -> Result<Self, ParseUrlError> {
        let (scheme, host) = HttpScheme::split(text)?;
        let mut host: HostPort = host.parse()?;
        host.port.get_or_insert(scheme.default_port());
        Ok(Self { scheme, host })
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
            assert!(is_match(&allowed, &requested), "{allowed:?} {requested:?}");
        }
    }

    #[test]
    fn an_allowed_port_does_not_allow_other_ports() {
        let allowed: HostPort = "example.com:80".parse().unwrap();

        assert!(!is_match(&allowed, &"example.com:81".parse().unwrap()));
        assert!(!is_match(&allowed, &"example.com".parse().unwrap()));
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
